"""Lesson: free memory in pieces cannot serve a request that needs one piece; pages can."""

from __future__ import annotations

import streamlit as st

from course.waste_between.actions import MAX_ACTIONS, Finish, format_actions
from course.waste_between.lesson import LESSON
from course.waste_between.scene import BLOCK_SIZE, NUM_SLOTS
from engine.i18n import _
from views import lesson_page
from views.elements.charts import draw_chart, line_chart
from views.html_parts import notice
from views.lessons import waste_between as this
from views.url_state import get_url_value, set_url_values, url_value_key


def add() -> None:
    replay(this.with_request(both.actions, st.session_state[url_value_key(this.KEY, "length")]), len(both.actions) + 1)


def finish() -> None:
    chosen = st.session_state.pop(url_value_key(this.KEY, "finish"), None)
    if chosen is not None:
        replay(format_actions([*both.actions, Finish(chosen)]), len(both.actions) + 1)


def undo() -> None:
    replay(format_actions(both.actions[:-1]), len(both.actions) - 1)


def replay(text: str, value: int) -> None:
    set_url_values(this.KEY, do=text, done=value)


TOO_MANY = _("At most {most} actions are possible. Undo one, or start with empty memory.").format(most=MAX_ACTIONS)

parts = lesson_page.begin(
    LESSON,
    _(
        "Why is a request refused although enough slots are free? A reservation must be "
        "**contiguous**. Requests end at different times and leave gaps, and a new request must fit "
        "into one of them."
    ),
)
text = get_url_value(this.KEY, this.ActionsRule(), this.GAPS_TEXT)
with parts.controls:
    lesson_page.examples(this.KEY, this.EXAMPLES)
    requests = get_url_value(this.KEY, this.REQUESTS, this.NUMBERED)
    if requests == this.CHATTING:
        lesson_page.say_three_requests(LESSON)
    with lesson_page.knobs(this.KEY):
        allocator = get_url_value(this.KEY, this.ALLOCATOR, "first_fit")
        st.selectbox(
            _("Allocator"), list(this.NAMES_OF_ALLOCATORS), key=url_value_key(this.KEY, "allocator"),
            format_func=lambda name: _(this.NAMES_OF_ALLOCATORS[name]),
        )  # fmt: skip
        block_size = get_url_value(this.KEY, this.PAGE_SIZE, BLOCK_SIZE)
        st.number_input(_("Block size"), 1, this.LARGEST_BLOCK, key=url_value_key(this.KEY, "block_size"))
        both = this.both_layouts(text, allocator, block_size, requests)
        is_full = not this.has_room_for_more(both.actions)
        get_url_value(this.KEY, this.LENGTH, 6)
        st.number_input(_("Tokens to add"), 1, NUM_SLOTS, key=url_value_key(this.KEY, "length"))
    with st.container(horizontal=True):
        st.button(_("Add request"), key="add_request", on_click=add, disabled=is_full)
        st.button(_("Undo"), key="undo_action", on_click=undo, disabled=not both.actions)
    holders = this.residents(both)
    if holders and not is_full:
        st.pills(_("Finish a request"), holders, key=url_value_key(this.KEY, "finish"), on_change=finish)
    if is_full:
        st.html(notice(TOO_MANY))

with parts.picture:
    value = lesson_page.play(this.KEY, both.in_runs, name=this.DONE, default=len(both.actions), share=0.48, parts=())
    lesson_page.play_beside("map_pages", both.on_pages, both.in_runs, value, share=0.52, parts=())
    lesson_page.say_what_is_scripted()

with parts.details, st.expander(_("Free slots after each action")):
    table = this.over_time(both)
    draw_chart(
        line_chart(table, this.ACTION, (this.FREE, this.LONGEST, this.FREE_ON_PAGES), _("Slots"), steps=True),
        table, _("Free slots after each action"), key="free_over_time",
    )  # fmt: skip

with parts.notes:
    lesson_page.end(
        LESSON,
        notice=(
            _(
                "In the chart, the first two lines separate when free memory is fragmented. Long requests "
                "cannot use the difference."
            ),
            _(
                "First fit uses the first gap that is long enough, best fit the shortest one. Neither can "
                "join two gaps."
            ),
            _("The buddy allocator merges gaps quickly, but rounds every request up to a power of two."),
            _("Compaction (moving running requests together) would help, but must copy their whole KV caches."),
        ),
        paper=_("Section 3.1: external fragmentation, and why compaction is impractical"),
    )
