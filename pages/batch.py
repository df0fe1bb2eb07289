"""Lesson: many requests at once, in reservations and in blocks; what paging saves and what it costs."""

from __future__ import annotations

import streamlit as st

from course.batch.lesson import LESSON
from engine.i18n import N_, _
from views import lesson_page
from views.elements.charts import draw_chart, frame_table
from views.lesson_picture import first_with_tokens
from views.lessons import batch as this
from views.url_state import get_url_value, url_value_key
from views.url_values import ChoiceRule

LAYOUTS, GAUGES = N_("reservations and blocks"), N_("KV cache usage")
SHOW = ChoiceRule("show", N_("Figure"), (LAYOUTS, GAUGES))


def figure_of_address() -> str:
    """The figure whose slider the address names."""
    return GAUGES if this.GAUGE_REQUESTS in st.query_params else LAYOUTS


def draw_controls() -> this.BatchPictures:
    lesson_page.examples(this.KEY, this.EXAMPLES)
    name = get_url_value(this.KEY, this.BATCH, this.TEN)
    rule = this.reserved_rule(name)
    block_size = get_url_value(this.KEY, this.BLOCK, int(this.BLOCK.default))
    num_reserved = get_url_value(this.KEY, rule, int(rule.default))
    if name == this.CHAT:
        lesson_page.say_three_requests(LESSON)
    with lesson_page.knobs(this.KEY):
        st.selectbox(_("Requests"), list(this.BATCHES), format_func=_, key=url_value_key(this.KEY, this.BATCH.key))
        low, high = int(this.BLOCK.low), int(this.BLOCK.high)
        st.number_input(_("Block size"), low, high, key=url_value_key(this.KEY, "block_size"))
        low, high = int(rule.low), int(rule.high)
        st.number_input(_("Slots reserved for each"), low, high, key=url_value_key(this.KEY, "reserved"))
    return this.both_layouts(num_reserved, block_size, name)


def draw_both_layouts(both: this.BatchPictures) -> int:
    """Returns how many requests are shown."""
    value = lesson_page.play(
        this.KEY,
        both.reserved,
        name=this.REQUESTS,
        default=min(this.DEFAULT_REQUESTS, both.reserved.values[-1]),
        share=0.48,
        parts=(),
    )
    lesson_page.play_beside("map_in_blocks", both.in_blocks, both.reserved, value, share=0.52, parts=())
    lesson_page.say_what_is_scripted()
    return value


def draw_saving_and_cost(both: this.BatchPictures) -> None:
    saving, cost = st.columns(2, gap="large")
    with saving:
        st.header(_("What it saves"))
        lesson_page.captions(
            N_("**Empty slots.** Less than one block of a request stays empty, however long it gets."),
            N_("**Gaps.** Any free block fits any request, so no free memory is unusable."),
            N_("**Copies.** A common prefix can be stored once."),
            N_(
                "**This decides how many users a server can handle at once.** When requests like these keep coming, "
                "this memory holds {both.num_reserved_fit} of them in reservations and {both.num_paged_fit} in blocks."
            ),
            facts={"both": both},
        )
    with cost:
        st.header(_("What it costs"))
        lesson_page.captions(
            N_(
                "**A lookup for every block.** Blocks can be anywhere, so the kernel must read the block "
                "table. The paper measured its attention kernel {more} slower than FasterTransformer's, which "
                "reads contiguous memory (section 7.1)."
            ),
            N_(
                "**Special kernels.** Keys and values are stored in blocks, so every attention kernel must be "
                "written for this layout."
            ),
            N_(
                "**A block size to choose.** Large blocks mean fewer lookups but more empty slots in the last "
                "block; small ones the reverse. Try 1 and 64 above."
            ),
            N_("The attention equation and the weights stay the same. Nothing is compressed."),
            facts={"more": "20 to 26 %"},
        )


def draw_gauges() -> None:
    gauge = this.gauge()
    lesson_page.play(this.GAUGE, gauge, name=this.GAUGE_REQUESTS, default=first_with_tokens(gauge.scene))
    lesson_page.say_what_is_scripted()
    lesson_page.captions(
        N_(
            "vLLM reports **KV cache usage**: the percentage of **blocks** in use. A block with a single "
            "token counts as used."
        ),
        facts={},
    )


parts = lesson_page.begin(
    LESSON,
    _(
        "How many users can one GPU serve at the same time? Each request wastes a few slots, and what "
        "many requests waste together is room for more of them."
    ),
)
show = get_url_value(this.KEY, SHOW, figure_of_address())
with parts.controls:
    st.selectbox(_("Figure"), SHOW.options, format_func=_, key=url_value_key(this.KEY, SHOW.key))
    both = draw_controls()
with parts.picture:
    if show == LAYOUTS:
        value = draw_both_layouts(both)
    else:
        draw_gauges()
with parts.details:
    if show == LAYOUTS:
        holders, chart = st.columns(2, gap="large")
        with holders:
            st.html(frame_table(this.holders_frame(both.scenes, value), _("What each request holds")))
        with chart:
            st.header(_("Slots by number of requests"))
            draw_chart(both.slots.chart, both.slots.table, _("Slots by number of requests"), key="slots_by_requests")
    else:
        st.header(_("Blocks used and slots used for this batch"))
        draw_chart(
            both.gauges.chart,
            both.gauges.table,
            _("Blocks used and slots used for this batch"),
            key="gauges_by_requests",
        )
    draw_saving_and_cost(both)

with parts.notes:
    lesson_page.end(
        LESSON,
        notice=(
            _("Both layouts store the same tokens. Blocks only leave fewer slots empty."),
            _(
                "In blocks, waste grows with the number of requests, not with their length: one partly filled "
                "block each."
            ),
            _("If blocks are larger than the texts, paging can hold more slots than reservations do."),
            _(
                "A server's **throughput** (tokens per second, of all requests together) depends on its "
                "workload, not on this sum alone."
            ),
        ),
        paper=_(
            "Section 3.1 with Fig. 2 (where memory goes), section 7.1 (the kernel's cost), section 7.2 (block sizes)"
        ),
    )
