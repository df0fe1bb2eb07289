"""Lesson: blocks may lie anywhere, because a table keeps their order."""

from __future__ import annotations

from functools import partial

from engine.said import said
from engine.usage import address_of
from views import lesson
from views.block_table import request_tables
from views.course import BLOCK_TABLE
from views.html_parts import notice
from views.kept import kept, kept_key, set_kept
from views.lessons import block_table as this
from views.memory_map import read_selection
from views.slot_address import slot_address_lines
from views.worded import st


def follow_what_was_clicked() -> None:
    """A token, a slot or a table row in the map: its request and token become the ones followed."""
    reported = st.session_state[lesson.map_key(this.KEY)].selection
    chosen = read_selection(picture.payload, None, None, reported)
    if chosen.seq_id in this.REQUESTS:
        set_kept(this.KEY, request=chosen.seq_id)
        if chosen.token_position is not None:
            set_kept(this.KEY, token=chosen.token_position)


def token_of(value: int) -> tuple[str, int] | None:
    """The token that is followed, once it has a slot."""
    rule = this.token_rule(picture.scene.at(value), request)
    return (request, kept(this.KEY, rule, min(this.DEFAULT_TOKEN, int(rule.high)))) if rule else None


def shuffle(number: int) -> None:
    set_kept(this.KEY, shuffle=number, step=this.requests_in_order(number).values[-1])


lesson.begin(
    BLOCK_TABLE,
    this.KEY,
    "Blocks lie wherever there was room. A list for each request, its **block table**, says which block comes first, "
    "which second, and so on.",
)
request = kept(this.KEY, this.REQUEST, "A")
number = kept(this.KEY, this.SHUFFLE, 0)
picture = this.requests_in_order(number)
with st.container(horizontal=True, vertical_alignment="bottom", key="order_controls"):
    st.pills("Request to follow", this.REQUESTS, key=kept_key(this.KEY, "request"), required=True)
    st.button("Shuffle the blocks", key="shuffle", on_click=partial(shuffle, number % this.LARGEST_SHUFFLE + 1))
    st.button("Put them back", key="put_back", on_click=partial(shuffle, 0), disabled=not number)

value = lesson.play(
    this.KEY,
    picture,
    name=this.STEP,
    default=picture.values[-1],
    selected_seq=request,
    followed=token_of,
    on_select=follow_what_was_clicked,
)
frame = picture.scene.at(value)
rule, followed = this.token_rule(frame, request), token_of(value)

st.header("Follow one token to its slot")
lesson.beats(
    "**One division finds a token.** How often the block size fits into its position gives the row. "
    "What is left over gives the place inside the block.",
    "Click a token in the picture, or give its number: the picture shows its row, its block and its slot. "
    "Counting starts at 0, for rows and slots too.",
    facts={},
)
if rule and followed:
    _request, token = followed
    steps_side, table_side = st.columns([2, 3], gap="medium")
    with steps_side:
        st.number_input("Token", 0, int(rule.high), key=kept_key(this.KEY, "token"))
        st.html(slot_address_lines(address_of(frame, request, token)))
    with table_side:
        st.html(request_tables(frame, request))
    st.code("slot = block_table[position // block_size] * block_size + position % block_size", language="python")
else:
    st.html(notice(said("{name} has written nothing yet. Move the slider to the right.", name=request)))

lesson.end(
    BLOCK_TABLE,
    notice=(
        "A block's number says where it lies, never what comes first.",
        "Only the last block of a request has empty slots. Every block before it is full.",
        "Requests never mix inside a block, so each can grow without asking the others.",
        "The attention kernel does this look-up whenever it reads a block. That is the price: one number more to read.",
    ),
    paper="Sections 4.1 to 4.3 and Fig. 6: block tables, and how attention follows them",
)
