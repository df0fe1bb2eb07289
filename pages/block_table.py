"""Lesson: blocks may lie anywhere, because a table keeps their order."""

from __future__ import annotations

from functools import partial

import streamlit as st

from course.block_table.lesson import LESSON
from engine.i18n import N_, _
from engine.trace.usage import address_of
from views import lesson_page
from views.elements.block_table import request_tables
from views.elements.charts import frame_table
from views.elements.slot_address import slot_address_lines
from views.html_parts import notice
from views.lessons import block_table as this
from views.memory_map.component import read_selection
from views.url_state import get_url_value, set_url_values, url_value_key


def follow_what_was_clicked() -> None:
    """A token, a slot or a table row in the map: its request and token become the ones followed."""
    reported = st.session_state[lesson_page.map_key(this.KEY)].selection
    chosen = read_selection(picture.payload, None, None, reported)
    if chosen.seq_id in this.REQUESTS:
        set_url_values(this.KEY, request=chosen.seq_id)
        if chosen.token_position is not None:
            set_url_values(this.KEY, token=chosen.token_position)


def token_of(value: int) -> tuple[str, int] | None:
    """The token that is followed, once it has a slot."""
    rule = this.token_rule(picture.scene.at(value), request)
    return (request, get_url_value(this.KEY, rule, min(this.DEFAULT_TOKEN, int(rule.high)))) if rule else None


def shuffle(number: int) -> None:
    set_url_values(this.KEY, shuffle=number, step=this.requests_in_order(number, requests).values[-1])


parts = lesson_page.begin(
    LESSON,
    _(
        "If blocks are scattered over memory, how is a text read in order? The pages of a book can be "
        "on different shelves, as long as a list says where each page is. Each request has such a "
        "list: its **block table**."
    ),
)
request = get_url_value(this.KEY, this.REQUEST, "A")
number = get_url_value(this.KEY, this.SHUFFLE, 0)
requests = get_url_value(this.KEY, this.SCENE, this.STORIES)
picture = this.requests_in_order(number, requests)
with parts.controls:
    st.selectbox(_("Requests"), list(this.SCENE.options), format_func=_, key=url_value_key(this.KEY, this.SCENE.key))
    if requests == this.CHAT:
        lesson_page.say_three_requests(LESSON)
with parts.controls, st.container(horizontal=True, vertical_alignment="bottom", key="order_controls"):
    st.pills(_("Request to follow"), this.REQUESTS, key=url_value_key(this.KEY, "request"), required=True)
    st.button(_("Shuffle the blocks"), key="shuffle", on_click=partial(shuffle, number % this.LARGEST_SHUFFLE + 1))
    st.button(_("Undo the shuffle"), key="put_back", on_click=partial(shuffle, 0), disabled=not number)

with parts.picture:
    value = lesson_page.play(
        this.KEY,
        picture,
        name=this.STEP,
        default=picture.values[-1],
        selected_seq=request,
        followed=token_of,
        on_select=follow_what_was_clicked,
    )
    lesson_page.say_what_is_scripted()
frame = picture.scene.at(value)
rule, followed = this.token_rule(frame, request), token_of(value)

with parts.notes:
    st.header(_("Follow one token to its slot"))
    if rule and followed:
        _request, token = followed
        st.number_input(_("Token"), 0, int(rule.high), key=url_value_key(this.KEY, "token"))
        st.html(slot_address_lines(address_of(frame, request, token)))
    else:
        st.html(notice(_("{name} has no tokens in the cache yet. Move the slider to the right.").format(name=request)))
    lesson_page.captions(
        N_(
            "**One division finds a token.** Position divided by block size gives the row; the remainder "
            "gives the place inside the block."
        ),
        N_(
            "Click a token in the picture, or enter its position: the picture shows its row, its block "
            "and its slot. Counting starts at 0, for positions, rows and slots."
        ),
        facts={},
    )

with parts.details, st.expander(_("The same idea in an operating system")):
    lesson_page.captions(
        N_(
            "To a program, its memory looks contiguous. The operating system stores it in pages that can "
            "be anywhere, and a **page table** for each process says where. Paged attention does the same "
            "for requests."
        ),
        facts={},
    )
    if rule:
        left, right = st.columns(2)
        left.html(frame_table(this.as_page_table(frame, request), _("Page table of a process")))
        caption = _("Block table of request {name}").format(name=request)
        right.html(frame_table(this.as_block_table(frame, request), caption))
    st.html(frame_table(this.counterparts(), _("Matching terms")))
if rule and followed:
    with parts.details:
        st.code("slot = block_table[position // block_size] * block_size + position % block_size", language="python")
        st.html(request_tables(frame, request))


with parts.notes:
    lesson_page.end(
        LESSON,
        notice=(
            _("A block's number says where it is in memory, not where its tokens are in the text."),
            _("Only the last block of a request has empty slots. Every block before it is full."),
            _("Two requests never fill one block together, so each can grow independently."),
            _(
                "The attention kernel does this lookup for every block it reads. That is the cost: one more "
                "number to read per block."
            ),
        ),
        paper=_("Sections 4.1 to 4.3 and Fig. 6: block tables, and how attention follows them"),
    )
