"""What the page shows of a source at one moment: figures, the memory map, and the prefix tree.

A source that knows physical places is drawn as it is. For one that does not, the map shows a card for each copy of a
block, in the order of storing, and says nothing of places and references (`places` in the payload).
"""

from __future__ import annotations

import time

import streamlit as st

from course.messages import Percent
from engine.i18n import N_, _, counted
from engine.remote.recording import RecordedStream
from engine.remote.report import Report, first_rank, report_of
from engine.remote.server import RemoteServer
from engine.remote.timeline import timeline_of
from engine.trace.cache_events import MessageReceived
from engine.trace.cache_view import RankView, StoredBlock
from engine.trace.source import TraceSource
from engine.trace.state import BlockState, CacheState, SlotContent
from views.figures import Figure, figure_rows
from views.html_parts import figures, notice
from views.memory_map.component import memory_map
from views.memory_map.frames import LabelledState, Payload, states_payload
from views.memory_map.narration import sentences
from views.remote.charts import WITHOUT_ADDRESS, WITHOUT_METRICS, draw_metrics, draw_timeline
from views.remote.radix_tree import draw_radix_tree, shared_html
from views.remote.viewed_source import ViewedSource
from views.remote.vocabulary import Vocabulary

MAX_CARDS = 200
HEIGHT_WITH_WORDS = 1_300
MAX_SLOTS_WITH_WORDS = 800
"""The recorded stream with 21 blocks of 32 is within it."""
UNKNOWN_PLACEMENT_TITLE = N_("Stored blocks (physical place unknown)")
REFRESH_SECONDS, CHART_REFRESH_SECONDS = 1.0, 3.0
KEEP_ALIVE_SECONDS = 10.0
UNKNOWN = N_("unknown")
NOTHING_YET = N_(
    "Nothing is known about the cache yet: servers report only when a block enters the prefix cache or is evicted."
)
NOTHING_SHARED = N_("No prefix is shared: no two stored texts begin with the same block.")
NO_EVENTS = N_("No address for KV events is given, so the cache itself cannot be shown, only the server's own metrics.")
FIGURES = (
    Figure(N_("Blocks stored"), "{report.num_blocks}"),
    Figure(N_("Extra copies"), "{report.num_extra_copies}"),
    Figure(N_("Stored so far"), "{report.num_stored}"),
    Figure(N_("Evicted so far"), "{report.num_removed}"),
)
_OPTIONAL = (
    Figure(N_("Pool size"), "{report.pool_blocks}"),
    Figure(N_("Occupancy"), Percent("report.occupancy", of_one=True)),
    Figure(N_("Stored per second"), "{report.stored_per_second:.1f}"),
    Figure(N_("Evicted per second"), "{report.removed_per_second:.1f}"),
)
"""Figures that not every source knows; the others say \"unknown\"."""


def map_payload(state: CacheState, rank: int, label: str, say: list[str], vocabulary: Vocabulary) -> Payload:
    """Frames for `memory_map`, of one engine of the source."""
    if state.blocks or state.arena:
        return states_payload([LabelledState(label, state, say)], title=_("Memory"))
    drawn = _state_with_unknown_placement(state.prefix_cache.of(rank), vocabulary)
    drawn.step = state.step
    return states_payload([LabelledState(label, drawn, say)], title=_(UNKNOWN_PLACEMENT_TITLE)) | {"places": "unknown"}


def map_height(state: CacheState, rank: int) -> int | None:
    """Pixels that the map may take: high enough for the words in the slots while there are few of those. None: any."""
    blocks = state.prefix_cache.of(rank).blocks.values()
    num_slots = sum(block.num_copies * block.block_size for block in blocks)
    return HEIGHT_WITH_WORDS if num_slots <= MAX_SLOTS_WITH_WORDS and not state.blocks else None


def num_cards_left_out(view: RankView) -> int:
    """Copies beyond what is drawn."""
    return max(view.num_copies - MAX_CARDS, 0)


def _state_with_unknown_placement(view: RankView, vocabulary: Vocabulary) -> CacheState:
    copies = [block for block in view.blocks.values() for _place in block.places][:MAX_CARDS]
    size = max((block.block_size for block in copies), default=0)
    blocks = [
        BlockState(number, _slots(block, size, vocabulary), block_hash=block.block_hash)
        for number, block in enumerate(copies)
    ]
    return CacheState(block_size=size, blocks=blocks)


def _slots(block: StoredBlock, size: int, vocabulary: Vocabulary) -> list[SlotContent | None]:
    """What the block holds, with no sequence named: whose it is is not known."""
    tokens: list[SlotContent | None] = [
        SlotContent("", offset, token_id, vocabulary.piece(token_id)) for offset, token_id in enumerate(block.token_ids)
    ]
    return tokens + [None] * (size - len(tokens))


def draw_live(viewed: ViewedSource, vocabulary: Vocabulary) -> None:
    """The newest moment, redrawn every second; charts less often."""
    st.fragment(_draw_newest, run_every=REFRESH_SECONDS)(viewed, vocabulary)
    st.fragment(_draw_charts, run_every=CHART_REFRESH_SECONDS)(viewed)


def draw_moment(viewed: ViewedSource, step: int, vocabulary: Vocabulary) -> None:
    """One moment of what was seen."""
    source = viewed.source
    if source is None:
        return
    try:
        state = source.at(step)
    except IndexError:
        st.html(notice(_("This moment is no longer kept; choose a later one."), "problem"))
        return
    _draw(viewed, source, state, vocabulary)
    _draw_charts(viewed, step)
    if viewed.server is not None:
        st.fragment(_keep_alive, run_every=KEEP_ALIVE_SECONDS)(viewed)
    if viewed.detokenizer is not None and viewed.detokenizer.num_waiting:
        st.fragment(_wait_for_texts, run_every=REFRESH_SECONDS)(viewed)


def _keep_alive(viewed: ViewedSource) -> None:
    """Keep the connection while a reader views an earlier moment."""
    if viewed.server is not None:
        viewed.server.touch()


def _wait_for_texts(viewed: ViewedSource) -> None:
    """Rerun the page when the server has answered for the tokens of this moment."""
    if viewed.detokenizer is None or not viewed.detokenizer.num_waiting:
        st.rerun()


def _draw_newest(viewed: ViewedSource, vocabulary: Vocabulary) -> None:
    server = viewed.server
    if server is None:
        return
    server.touch()
    if viewed.read_head() != viewed.head:
        st.rerun()  # it has told its name, its model or its words by now, which the page outside shows
    for problem in server.problems():
        st.html(notice(problem, "problem"))
    _draw(viewed, server, server.at(server.last_step), vocabulary)


def _draw(viewed: ViewedSource, source: TraceSource, state: CacheState, vocabulary: Vocabulary) -> None:
    if not (state.prefix_cache.ranks or state.blocks or state.arena):
        has_no_events = viewed.server is not None and viewed.server.addresses.events is None
        st.html(notice(_(NO_EVENTS) if has_no_events else _(NOTHING_YET)))
        return
    report = report_of(source, state, _chosen_rank(state))
    st.html(figures(_figures(report)))
    for sentence in notes(report):
        st.html(notice(sentence))
    if report.num_copies or state.blocks or state.arena:
        _draw_map(source, state, report, vocabulary)
        _draw_radix_tree(viewed, report, vocabulary)


def _draw_charts(viewed: ViewedSource, step: int | None = None) -> None:
    """`step`: the moment shown, None for the newest as it comes."""
    source = viewed.source
    if source is None:
        return
    sent = None if step is None or step == source.last_step else _time_of(source, step)
    moment = None if sent is None or step is None else (sent, _("Moment {step}").format(step=step))
    if isinstance(source, RemoteServer | RecordedStream):
        is_server = isinstance(source, RemoteServer)
        draw_timeline(source.timeline(), moment, WITHOUT_ADDRESS if is_server else WITHOUT_METRICS)
        draw_metrics(source.samples)
    else:
        draw_timeline(timeline_of(source.per_second(), ()), moment, "")


def _draw_map(source: TraceSource, state: CacheState, report: Report, vocabulary: Vocabulary) -> None:
    events = source.events_of(state.step)
    payload = map_payload(state, report.rank, moment_name(source, state.step), sentences(events), vocabulary)
    memory_map(payload, key="remote_map", controls=False, height=map_height(state, report.rank))
    left_out = num_cards_left_out(state.prefix_cache.of(report.rank))
    if left_out and not state.blocks:
        st.html(
            notice(
                _("The first {max_cards} copies are drawn; {left_out} more are stored.").format(
                    max_cards=MAX_CARDS, left_out=left_out
                )
            )
        )


def _draw_radix_tree(viewed: ViewedSource, report: Report, vocabulary: Vocabulary) -> None:
    st.header(_("Prefixes"))
    if not report.radix_tree.shared:
        st.html(notice(_(NOTHING_SHARED)))
    draw_radix_tree(report.radix_tree, vocabulary, viewed.asked)
    if report.radix_tree.num_nodes_hidden:
        st.html(
            notice(
                counted(
                    "{n} smaller branch is not listed.",
                    "{n} smaller branches are not listed.",
                    report.radix_tree.num_nodes_hidden,
                )
            )
        )
    if report.radix_tree.shared:
        st.html(shared_html(report.radix_tree.shared, vocabulary))


def notes(report: Report) -> list[str]:
    """What a reader must know about this view, one sentence each."""
    found = []
    if report.started_over is not None:
        found.append(
            _("The server restarted at moment {moment}: its cache was empty, and the view started over.").format(
                moment=report.started_over
            )
        )
    if report.partial_since is not None and report.missed is not None:
        first, last = report.missed
        found.append(
            _(
                "Partial view since moment {partial_since}: messages {first} to {last} were lost. Blocks "
                "stored in them are not shown, and some that are shown may have been evicted."
            ).format(partial_since=report.partial_since, first=first, last=last)
        )
    if report.num_unknown_removed:
        found.append(
            counted(
                "{n} block was removed that this view never saw stored.",
                "{n} blocks were removed that this view never saw stored.",
                report.num_unknown_removed,
            )
        )
    if report.num_forgotten:
        found.append(
            counted(
                "The {n} oldest stored block is no longer tracked here.",
                "The {n} oldest stored blocks are no longer tracked here.",
                report.num_forgotten,
            )
        )
    if report.radix_tree.num_orphans:
        found.append(
            counted(
                "{n} tree below begins after a block that is not stored: no prompt can hit it until that block "
                "is stored again.",
                "{n} trees below begin after blocks that are not stored: no prompt can hit them until those "
                "blocks are stored again.",
                report.radix_tree.num_orphans,
            )
        )
    if report.radix_tree.num_in_cycles:
        found.append(
            _("Blocks that name each other as parents are not listed: {num_in_cycles}.").format(
                num_in_cycles=report.radix_tree.num_in_cycles
            )
        )
    return found


def moment_name(source: TraceSource, step: int) -> str:
    """The number of a moment, and its time by the server's clock where it tells."""
    sent = _time_of(source, step)
    clock = "" if sent is None else time.strftime(" · %H:%M:%S UTC", time.gmtime(sent))
    return _("Moment {step}").format(step=step) + clock


def _time_of(source: TraceSource, step: int) -> float | None:
    """When the moment's message was sent, by the server's clock."""
    times = [event.timestamp for event in source.events_of(step) if isinstance(event, MessageReceived)]
    return times[-1] if times else None


def _figures(report: Report) -> list[tuple[str, str, str]]:
    facts = {"report": report}
    known = [figure for figure in _OPTIONAL if getattr(report, figure.key.removeprefix("report.")) is not None]
    unknown = [(figure.key, _(figure.name), _(UNKNOWN)) for figure in _OPTIONAL if figure not in known]
    return [*figure_rows((*FIGURES, *known), facts), *unknown]


def _chosen_rank(state: CacheState) -> int:
    chosen = st.session_state.get("remote_rank")
    return chosen if isinstance(chosen, int) and chosen in state.prefix_cache.ranks else first_rank(state.prefix_cache)
