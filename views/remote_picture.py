"""What a source shows at one moment: figures, the map, the forest, and what came over time."""

from __future__ import annotations

import time

import streamlit as st

from engine.cache_events import MessageReceived
from engine.event_base import plural
from engine.remote.report import Report, first_rank, report_of
from engine.state import CacheState
from engine.trace_source import TraceSource
from views.html_parts import figures, notice
from views.memory_map import memory_map
from views.narration import sentences
from views.remote_charts import draw_flow, draw_metrics
from views.remote_forest import forest_html, shared_html
from views.remote_map import MOST_CARDS, map_payload, num_cards_left_out
from views.remote_shown import Shown
from views.remote_words import Words
from views.told import Figure, told_figures

SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_CHARTS = 1.0, 3.0
SECONDS_BETWEEN_SIGNS = 10.0
UNKNOWN = "unknown"
NOTHING_YET = "Nothing is known of the cache yet: servers tell only when a block becomes findable or is given up."
FIGURES = (
    Figure("Blocks stored", "{report.num_blocks}"),
    Figure("Copies", "{report.num_copies}"),
    Figure("Stored so far", "{report.num_stored}"),
    Figure("Removed so far", "{report.num_removed}"),
)
_OPTIONAL = (
    Figure("Of a pool of", "{report.pool_blocks}"),
    Figure("Occupancy", "{report.occupancy:.0%}"),
    Figure("Stored a second", "{report.stored_per_second:.1f}"),
    Figure("Removed a second", "{report.removed_per_second:.1f}"),
)
"""Figures that not every source knows: unknown ones are said to be."""


def draw_live(now: Shown, words: Words) -> None:
    """The newest moment, drawn again every second while the server is looked at; charts less often."""
    st.fragment(_draw_newest, run_every=SECONDS_BETWEEN_LOOKS)(now, words)
    st.fragment(_draw_charts, run_every=SECONDS_BETWEEN_CHARTS)(now)


def draw_moment(now: Shown, step: int, words: Words) -> None:
    """One moment of what was seen."""
    source = now.source
    if source is None:
        return
    try:
        state = source.at(step)
    except IndexError:
        st.html(notice("This moment is no longer kept; choose a later one.", "problem"))
        return
    _draw(now, source, state, words)
    _draw_charts(now)
    if now.server is not None:
        st.fragment(_keep, run_every=SECONDS_BETWEEN_SIGNS)(now)


def _keep(now: Shown) -> None:
    """A reader who stands at an earlier moment looks, too: what was seen must not be let go."""
    if now.server is not None:
        now.server.seen()


def _draw_newest(now: Shown, words: Words) -> None:
    server = now.server
    if server is None:
        return
    server.seen()
    if server.facts != now.facts:
        st.rerun()  # it has told its name or its model by now, which the page outside shows
    for problem in server.problems():
        st.html(notice(problem, "problem"))
    _draw(now, server, server.at(server.last_step), words)


def _draw(now: Shown, source: TraceSource, state: CacheState, words: Words) -> None:
    if not (state.findable.ranks or state.blocks or state.arena):
        st.html(notice(NOTHING_YET))
        return
    report = report_of(source, state, _chosen_rank(state))
    st.html(figures(_figures(report)))
    for sentence in notes(report):
        st.html(notice(sentence))
    if report.num_copies or state.blocks or state.arena:
        _draw_map(source, state, report, words)
        _draw_forest(now, report, words)


def _draw_charts(now: Shown) -> None:
    if now.source is not None:
        draw_flow(now.source.flow())
    if now.server is not None:
        draw_metrics(now.server.samples)


def _draw_map(source: TraceSource, state: CacheState, report: Report, words: Words) -> None:
    events = source.events_of(state.step)
    payload = map_payload(state, report.rank, moment_name(source, state.step), sentences(events), words)
    memory_map(payload, key="remote_map", controls=False)
    left_out = num_cards_left_out(state.findable.of(report.rank))
    if left_out and not state.blocks:
        st.html(notice(f"The first {MOST_CARDS} copies are drawn; {left_out} more are stored."))


def _draw_forest(now: Shown, report: Report, words: Words) -> None:
    st.header("Prefixes")
    st.html(forest_html(report.forest, words, now.asked))
    if report.forest.num_runs_hidden:
        st.html(notice(f"{plural(report.forest.num_runs_hidden, 'smaller branch').replace('branchs', 'branches')} "
                       "are not listed."))  # fmt: skip
    if report.forest.shared:
        st.html(shared_html(report.forest.shared, words))


def notes(report: Report) -> list[str]:
    """What a reader must know about this view, one sentence each."""
    said = []
    if report.started_over is not None:
        when = f"The server restarted at moment {report.started_over}"
        said.append(f"{when}: its cache was empty, and the view started over.")
    if report.partial_since is not None and report.missed is not None:
        first, last = report.missed
        said.append(
            f"Partial view since moment {report.partial_since}: messages {first} to {last} never came. "
            "Blocks stored in them are not shown, and some that are shown may be gone."
        )
    if report.num_unknown_removed:
        blocks = plural(report.num_unknown_removed, "block")
        said.append(f"{blocks} removed that this view never saw stored.")
    if report.num_forgotten:
        said.append(f"{plural(report.num_forgotten, 'block')} stored longest ago are no longer followed here.")
    if report.forest.num_orphans:
        trees = plural(report.forest.num_orphans, "tree")
        said.append(f"{trees} below whose beginning is not stored: no prompt can reach them until it is stored again.")
    if report.forest.num_in_rings:
        said.append(f"{plural(report.forest.num_in_rings, 'block')} name each other as parents and are not listed.")
    return said


def moment_name(source: TraceSource, step: int) -> str:
    """The number of a moment, and its time by the server's clock where it tells."""
    times = [event.timestamp for event in source.events_of(step) if isinstance(event, MessageReceived)]
    clock = time.strftime(" · %H:%M:%S", time.gmtime(times[-1])) if times else ""
    return f"Moment {step}{clock}{' UTC' if clock else ''}"


def _figures(report: Report) -> list[tuple[str, str, str]]:
    facts = {"report": report}
    known = [figure for figure in _OPTIONAL if getattr(report, figure.key.removeprefix("report.")) is not None]
    unknown = [(figure.key, figure.name, UNKNOWN) for figure in _OPTIONAL if figure not in known]
    return [*told_figures((*FIGURES, *known), facts), *unknown]


def _chosen_rank(state: CacheState) -> int:
    chosen = st.session_state.get("remote_rank")
    return chosen if isinstance(chosen, int) and chosen in state.findable.ranks else first_rank(state.findable)
