"""The prefix forest as nested lists, and the most shared beginnings as a table. All text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable

from engine.cache_events import BlockHash
from engine.event_base import plural
from engine.remote.forest import Forest, Run
from engine.remote.prompt import Asked
from views.html_parts import escaped
from views.remote_words import Words

UNKNOWN_START = "its beginning is not stored"
STORED_MARK, FOUND_MARK = "stored by your prompt", "found by your prompt"


def forest_html(forest: Forest, words: Words, asked: Asked | None) -> str:
    """Trees as lists in lists: a list item a run, its continuations below it."""
    if not forest.runs:
        return ""
    parts: list[str] = []
    depth = -1
    for run in forest.runs:
        opened = "<ul>" * (run.depth - depth) if run.depth > depth else "</li></ul>" * (depth - run.depth) + "</li>"
        parts.append(f"{opened}<li>{_run_html(run, words, asked)}")
        depth = run.depth
    parts.append("</li></ul>" * (depth + 1))
    return f'<div class="pv-forest" role="region" tabindex="0" aria-label="Prefix forest">{"".join(parts)}</div>'


def shared_html(runs: Iterable[Run], words: Words) -> str:
    """Beginnings by the number of different continuations."""
    rows = "".join(
        f"<tr><td data-continuations>{run.num_continuations}</td><td>{run.end}</td>"
        f'<td class="pv-words">{escaped(words.end(run.token_ids))}</td></tr>'
        for run in runs
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("goes on in", "tokens so far", "ends with"))
    caption = "Beginnings with the most different continuations"
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{caption}">'
        f"<table data-shared><caption>{caption}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _run_html(run: Run, words: Words, asked: Asked | None) -> str:
    told = [plural(len(run.blocks), "block"), plural(run.num_tokens, "token")]
    if run.num_copies > len(run.blocks):
        told.append(plural(run.num_copies, "copy").replace("copys", "copies"))
    if run.has_unknown_start:
        told.append(UNKNOWN_START)
    marks = "".join(
        f'<span class="pv-mark" data-mark="{kind}">{escaped(text)}</span>' for kind, text in _marks(run, asked)
    )
    return (
        f'<span class="pv-words">{escaped(words.beginning(run.token_ids))}</span> '
        f'<small>{escaped(", ".join(told))}</small>{marks}'
    )


def _marks(run: Run, asked: Asked | None) -> Iterable[tuple[str, str]]:
    if asked is None:
        return
    for kind, hashes, text in (("stored", asked.stored, STORED_MARK), ("found", asked.found, FOUND_MARK)):
        count = _num_in(run, hashes)
        if count:
            yield kind, f"{count} {text}"


def _num_in(run: Run, hashes: frozenset[BlockHash]) -> int:
    return sum(block.block_hash in hashes for block in run.blocks)
