"""The prefix cache at the step the map shows: blocks by their hash, the free queue, hits and misses block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.i18n import N_, _, counted
from engine.trace.state import CacheState
from views.elements.token_chips import chip
from views.html_parts import escaped, notice, small
from views.live.link import viewed_step
from views.server.engine_session import EngineSession

if TYPE_CHECKING:
    from engine.inspect.prefix_lookup import BlockLookup, CachedBlock

_QUERY, _NEWEST = "prefix_query", "prefix_newest"
OFF = N_("Prefix caching is off in this engine. Switch it on under Settings, then Reset.")
NOTHING_CACHED = N_("No block is full yet, so none is cached. Press Step until a request has filled a block.")
NO_QUERY = N_("No request has started yet, so nothing has been looked up in the cache.")
HASHES = N_(
    "A full block's hash covers its parent's hash and its own tokens, so the same tokens after a different "
    "beginning have a different hash."
)
QUEUE = N_("Blocks are taken from the left. A cached block keeps its content until it is taken: then it is evicted.")
OUTCOMES = {
    "hit": (N_("Hit"), N_("Found in block {block_id}: nothing to compute.")),
    "miss": (N_("Miss"), N_("No cached block has this parent and these tokens.")),
    "after a miss": (N_("Not looked up"), N_("A block before it was a miss, so no cached block can be its parent.")),
    "last token": (N_("Not looked up"), N_("It holds the last token, which is always computed: its output is needed.")),
    "not full": (N_("Not looked up"), N_("It is not full, and only full blocks are cached.")),
}
SAME_TOKENS = N_(" Block {block_id} has the same tokens after a different beginning.")


def draw_prefix_cache(session: EngineSession) -> None:
    """Cached blocks, free queue and the hits and misses of one request."""
    from engine.inspect.prefix_lookup import cached_blocks, lookups_of, prefix_queries

    if not session.engine.config.enable_prefix_caching:
        st.html(notice(_(OFF)))
        return
    with session.between_steps() as engine:
        trace = engine.trace.copy()
    at = viewed_step()
    step = trace.num_steps if at is None else min(at, trace.num_steps)
    state = trace.at(step)
    cached = cached_blocks(state)
    st.html(_free_queue(state))
    st.html(_hash_table(cached, step) if cached else notice(_(NOTHING_CACHED)))
    queries = [query for query in prefix_queries(trace) if query.step <= step]
    if not queries:
        st.html(notice(_(NO_QUERY)))
        return
    names = [f"{query.seq_id}, step {query.step}" for query in queries]
    if st.session_state.get(_QUERY) not in names or st.session_state.get(_NEWEST) != names[-1]:
        st.session_state[_QUERY] = st.session_state[_NEWEST] = names[-1]  # the newest, until the reader chooses
    chosen = names.index(st.selectbox(_("Hit or miss, block by block, when this request started"), names, key=_QUERY))
    st.html(_lookup_table(lookups_of(trace, queries[chosen]), names[chosen]))


def short_hash(block_hash: int | bytes | str | None) -> str:
    """The first eight hexadecimal digits; "none" for the parent of a first block."""
    if block_hash is None:
        return "none"
    return f"{block_hash:016x}"[:8] if isinstance(block_hash, int) else str(block_hash)[:8]


def _free_queue(state: CacheState) -> str:
    from engine.inspect.prefix_lookup import next_evicted

    evicted = next_evicted(state)
    items = "".join(_queued(state, block_id, is_evicted=block_id == evicted) for block_id in state.free_block_queue)
    words = _("Nothing is cached and free, so nothing would be evicted.")
    if evicted is not None:
        before = list(state.free_block_queue).index(evicted)
        words = (
            counted(
                "Evicted next: block {evicted}, after the {n} free block before it is taken.",
                "Evicted next: block {evicted}, after the {n} free blocks before it are taken.",
                before,
                evicted=evicted,
            )
            if before
            else _("Evicted next: block {evicted}; the next new block takes it.").format(evicted=evicted)
        )
    title, nothing_free = _("Free queue"), _("No block is free.")
    queue = f'<ol class="pv-queue" data-free-queue>{items}</ol>' if items else f"<p>{nothing_free}</p>"
    return f'<p class="pv-ask"><strong>{title}</strong></p>{small(f"{_(QUEUE)} {words}")}{queue}'


def _queued(state: CacheState, block_id: int, *, is_evicted: bool) -> str:
    block_hash = state.blocks[block_id].block_hash
    words = _("free") if block_hash is None else f"#{short_hash(block_hash)}"
    title = escaped(_("evicted next"))
    mark = f' data-evicted-next title="{title}"' if is_evicted else ""
    return f'<li data-block="{block_id}"{mark}><b>{block_id}</b> {escaped(words)}</li>'


def _hash_table(cached: list[CachedBlock], step: int) -> str:
    rows = "".join(_hash_row(block) for block in cached)
    head = (_("Block"), _("Parent's hash"), _("Its tokens"), _("Hash"), _("Now"))
    return _table(_("Cached blocks after step {step}").format(step=step), "cached", head, rows, _(HASHES))


def _hash_row(block: CachedBlock) -> str:
    now = _("in use, ref_cnt {ref_cnt}") if block.queue_index is None else _("free, {before} ahead of it in the queue")
    now = now.format(ref_cnt=block.ref_cnt, before=block.queue_index)
    pieces = "".join(chip(piece) for piece in block.pieces)
    return (
        f'<tr><th scope="row">{block.block_id}</th><td><code>{short_hash(block.parent_block_hash)}</code></td>'
        f"<td>{pieces}</td><td><code>{short_hash(block.block_hash)}</code></td><td>{escaped(now)}</td></tr>"
    )


def _lookup_table(lookups: list[BlockLookup], name: str) -> str:
    rows = "".join(_lookup_row(lookup) for lookup in lookups)
    return _table(
        _("Prefix cache lookup of {name}").format(name=name),
        "lookups",
        (_("Logical block"), _("Its tokens"), _("Outcome"), _("Why")),
        rows,
    )


def _lookup_row(lookup: BlockLookup) -> str:
    outcome, why = map(_, OUTCOMES[lookup.outcome])
    if lookup.outcome == "miss" and lookup.block_id is not None:
        why += _(SAME_TOKENS)
    pieces = "".join(chip(piece) for piece in lookup.pieces)
    return (
        f'<tr data-outcome="{lookup.outcome}"><th scope="row">{lookup.logical_index}</th><td>{pieces}</td>'
        f"<td>{outcome}</td><td>{escaped(why.format(block_id=lookup.block_id))}</td></tr>"
    )


def _table(caption: str, key: str, headings: tuple[str, ...], rows: str, words: str = "") -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    note = small(words) if words else ""
    return (
        f'{note}<div class="pv-table" role="region" tabindex="0" aria-label="{escaped(caption)}">'
        f'<table data-prefix="{key}"><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
