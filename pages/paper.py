"""The paper's claims about memory, figure by figure, beside what this engine does."""

from __future__ import annotations

import streamlit as st

from course.pages import PAPER
from engine.i18n import _
from views import lesson_page
from views.elements.charts import draw_chart, frame_table
from views.html_parts import draw_list, small
from views.lab import paper as this
from views.lab.background import result_of
from views.lab.controls import choose, type_number
from views.navigation import draw_next, draw_previous
from views.url_state import draw_corrections, flush_url, get_url_value, url_value_key

stored = this.stored_results()


def choose_figure() -> str:
    """The key of a record."""
    key = get_url_value(this.KEY, this.FIGURE, this.FIGURE.options[0])
    st.selectbox(
        _(this.FIGURE.name), this.FIGURE.options, this.FIGURE.options.index(key),
        format_func=this.labels().__getitem__, key=url_value_key(this.KEY, this.FIGURE.key),
    )  # fmt: skip
    return key


def draw_figure() -> None:
    """The chosen figure: the claim, ours beside it, what differs, and why it does not hold where it does not."""
    record = this.record_of(choose_figure())
    measured = stored.rows.get(record.key)
    st.header(this.heading_of(record))
    if record.is_timed:
        st.html(small(_("This row measures times, so nothing else may run meanwhile: the command below runs it.")))
    else:
        if st.button(_("Run here, smaller"), key=f"run_{record.key}"):
            st.session_state["paper_run_here"] = record.key
        if st.session_state.get("paper_run_here") == record.key:
            measured = result_of(this.KEY, record.key, lambda: this.run_here(record, stored))
            if measured:
                st.html(small(_("Run on this machine: one seed, fewer requests. The verdict is that of this run.")))
    st.html(frame_table(this.quantities_frame(record, measured), _("The paper's numbers and ours")))
    st.html(small(_("Ours: the smallest and the largest of all traces or rounds. A claim holds if all reach it.")))
    for number, curve in enumerate(measured.curves if measured else ()):
        draw_chart(this.curve_chart(curve), this.curve_frame(curve), this.curve_caption(curve), key=f"curve_{number}")
    if record.two_readings:
        st.markdown(_("**Text and figure disagree.** {sentence}").format(sentence=_(record.two_readings)))
    if measured and record.why and record.judge(measured) != "holds":
        st.markdown(_("**Why not in full.** {sentence}").format(sentence=_(record.why)))
    with st.expander(_("Set-up, marks and command")):
        draw_list([_(sentence) for sentence in record.setup])
        draw_list(this.marks_in(record))
        if date := stored.dates.get(record.key):
            st.html(small(_("Stored: measured {date}.").format(date=date)))
        st.code(record.command, language=None, wrap_lines=True)


def draw_trace() -> None:
    """One trace to play with."""
    mix = choose(this.KEY, this.MIX)
    with lesson_page.knobs(this.KEY):
        rate, block_size, num_slots = (type_number(this.KEY, rule) for rule in (this.RATE, this.BLOCK_SIZE, this.SLOTS))
    inputs = this.TraceInputs(mix, rate, block_size, num_slots)
    trace = result_of(f"{this.KEY}_trace", inputs, lambda: this.run_trace(inputs))
    if trace:
        curve = this.trace_curve(trace)
        drawn, numbers = st.columns([3, 1], gap="large")
        with drawn:
            draw_chart(this.curve_chart(curve), this.curve_frame(curve), this.curve_caption(curve), key="trace")
        with numbers:
            st.html(frame_table(this.latency_frame(trace), _("Latency over the length of the reply")))


st.title(_(PAPER.title))
st.markdown(
    _(
        "Is it true what the paper says? Every figure and table of it that is about memory, run "
        "again with this engine's scheduler, allocators and kernels. Nothing is tuned to agree: "
        "where a claim does not hold here, the page says so, and why."
    )
)
if stored.machine:
    st.markdown(
        _("Stored results: {date}, {processor}. `python -m benchmarks.paper` runs all of them again.").format(
            date=stored.machine["date"], processor=stored.machine["processor"]
        )
    )
left, right = st.columns(2, gap="large")
with left:
    st.html(this.verdicts_table(stored))
with right:
    draw_figure()
st.header(_("Change one thing"))
st.markdown(
    _(
        "One small trace in four memories of the same size. Requests arrive at random; every step "
        "takes equally long. A line is how many requests run at once."
    )
)
draw_trace()
draw_corrections(this.KEY)
if stored.step_times:
    with st.expander(_("Machine and step times")):
        st.code("\n".join(f"{name}: {value}" for name, value in stored.machine.items()), language=None, wrap_lines=True)
        st.html(frame_table(this.step_times_frame(stored), _("Time of a step on that machine")))
source = {"paper": lesson_page.PAPER, "address": lesson_page.PAPER_ADDRESS}
st.markdown(_("**The paper:** [{paper}]({address})").format(**source))
before, after = st.columns(2)
with before:
    draw_previous(PAPER)
with after:
    draw_next(PAPER)
flush_url()
