"""The prefix tree as nested lists, and the most shared beginnings as a table. All text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable

from engine.i18n import N_, _, blocks_counted, counted, tokens_counted
from engine.remote.prompt import PromptResult
from engine.remote.radix_tree import RadixNode, RadixTree
from engine.trace.cache_events import BlockHash
from views.html_parts import escaped
from views.remote.vocabulary import Vocabulary

UNKNOWN_START = N_("its parent is not stored")
STORED_MARK, FOUND_MARK = N_("{n} stored by your prompt"), N_("{n} found by your prompt")


def radix_tree_html(tree: RadixTree, vocabulary: Vocabulary, asked: PromptResult | None) -> str:
    """Trees as nested lists: one item for each node, with its continuations below it."""
    if not tree.nodes:
        return ""
    parts: list[str] = []
    depth = -1
    for node in tree.nodes:
        opened = "<ul>" * (node.depth - depth) if node.depth > depth else "</li></ul>" * (depth - node.depth) + "</li>"
        parts.append(f"{opened}<li>{_node_html(node, vocabulary, asked)}")
        depth = node.depth
    parts.append("</li></ul>" * (depth + 1))
    label = escaped(_("Prefix tree"))
    return f'<div class="pv-radix-tree" role="region" tabindex="0" aria-label="{label}">{"".join(parts)}</div>'


def shared_html(nodes: Iterable[RadixNode], vocabulary: Vocabulary) -> str:
    """Beginnings by the number of different continuations."""
    rows = "".join(
        f"<tr><td data-continuations>{node.num_continuations}</td><td>{node.end}</td>"
        f'<td class="pv-words" dir="auto">{escaped(vocabulary.end(node.token_ids))}</td></tr>'
        for node in nodes
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in (_("branches"), _("tokens so far"), _("ends with")))
    caption = _("Prefixes with the most branches")
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{caption}">'
        f"<table data-shared><caption>{caption}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _node_html(node: RadixNode, vocabulary: Vocabulary, asked: PromptResult | None) -> str:
    facts = [blocks_counted(len(node.blocks)), tokens_counted(node.num_tokens)]
    if node.num_copies > len(node.blocks):
        facts.append(counted("{n} copy", "{n} copies", node.num_copies))
    if node.has_unknown_start:
        facts.append(_(UNKNOWN_START))
    marks = "".join(
        f'<span class="pv-mark" data-mark="{kind}">{escaped(text)}</span>' for kind, text in _marks(node, asked)
    )
    return (
        f'<span class="pv-words" dir="auto">{escaped(vocabulary.beginning(node.token_ids))}</span> '
        f"<small>{escaped(', '.join(facts))}</small>{marks}"
    )


def _marks(node: RadixNode, asked: PromptResult | None) -> Iterable[tuple[str, str]]:
    if asked is None:
        return
    for kind, hashes, text in (("stored", asked.stored, STORED_MARK), ("found", asked.found, FOUND_MARK)):
        count = _num_in(node, hashes)
        if count:
            yield kind, _(text).format(n=count)


def _num_in(node: RadixNode, hashes: frozenset[BlockHash]) -> int:
    return sum(block.block_hash in hashes for block in node.blocks)
