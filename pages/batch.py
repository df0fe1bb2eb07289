"""Lesson: many requests at once, in reservations and in blocks; what paging saves and what it costs."""

from __future__ import annotations

from views import lesson
from views.charts import draw_chart
from views.course import BATCH
from views.kept import kept, kept_key
from views.lessons import batch as this
from views.worded import st


def draw_controls() -> this.BothLayouts:
    lesson.examples(this.KEY, this.EXAMPLES)
    block_side, reserved_side, _rest = st.columns([1, 1, 2])
    block_size = kept(this.KEY, this.BLOCK, int(this.BLOCK.default))
    num_reserved = kept(this.KEY, this.RESERVED, int(this.RESERVED.default))
    with block_side:
        st.number_input("Block size", int(this.BLOCK.low), int(this.BLOCK.high), key=kept_key(this.KEY, "block_size"))
    with reserved_side:
        st.number_input(
            "Slots reserved for each", int(this.RESERVED.low), int(this.RESERVED.high),
            key=kept_key(this.KEY, "reserved"),
        )  # fmt: skip
    return this.both_layouts(num_reserved, block_size)


def draw_both_layouts(both: this.BothLayouts) -> None:
    value = lesson.play(this.KEY, both.reserved, name=this.REQUESTS, default=this.DEFAULT_REQUESTS, height=260)
    st.header("The same requests in blocks")
    lesson.play_beside("map_in_blocks", both.in_blocks, both.reserved, value, height=320)
    st.header("Slots by number of requests")
    draw_chart(both.slots.chart, both.slots.table, "Slots by number of requests", key="slots_by_requests")


def draw_saving_and_cost() -> None:
    saving, cost = st.columns(2, gap="large")
    with saving:
        st.header("What it saves")
        lesson.beats(
            "**Empty slots.** A request wastes less than one block, however long it gets.",
            "**Gaps.** Every block fits every request, so no free memory is out of reach.",
            "**Copies.** Equal beginnings can be stored once.",
            "The room that is left serves more requests at once.",
            facts={},
        )
    with cost:
        st.header("What it costs")
        lesson.beats(
            "**A look-up for every block read.** Neighbouring tokens may lie far apart, and the kernel must ask the "
            "table. The paper measured its attention kernel 20 to 26 % slower than FasterTransformer's, which reads "
            "contiguous memory (section 7.1).",
            "**A layout of its own.** Keys and values lie in blocks, so every attention kernel must be written for it.",
            "**A block size to choose.** Large blocks mean fewer look-ups and longer empty tails; small ones the "
            "reverse. Try 1 and 64 above.",
            "The attention equation and the weights stay as they are. Nothing is compressed.",
            facts={},
        )


def draw_gauges(both: this.BothLayouts) -> None:
    st.header("A full gauge is not a full memory")
    lesson.beats(
        "Servers such as vLLM report how many **blocks** are taken. A block with one token in it counts as taken.",
        facts={},
    )
    lesson.play(this.GAUGE, this.gauge(), name=this.GAUGE_REQUESTS, default=this.gauge().values[-1], height=260)
    draw_chart(both.gauges.chart, both.gauges.table, "Both gauges for the batch above", key="gauges_by_requests")


lesson.begin(
    BATCH,
    this.KEY,
    "One request wastes a few slots. A server runs many, and what they waste together is room for more of them.",
)
both = draw_controls()
draw_both_layouts(both)
draw_saving_and_cost()
draw_gauges(both)
lesson.end(
    BATCH,
    notice=(
        "The tokens stored are the same in both layouts. Only the empty slots become fewer.",
        "The waste in blocks grows with the number of requests, not with their length: one tail each.",
        "With blocks larger than the texts, paging can hold more than reservations do.",
        "How many more requests a server really serves depends on the work it gets, not on this sum alone.",
    ),
    paper="Section 3.1 with Fig. 2 (where memory goes), section 7.1 (the kernel's cost), section 7.2 (block sizes)",
)
