"""The picture of a decoded log, and its lines with what each says. The text of a log is shown, never interpreted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd
import streamlit as st

from engine.i18n import N_, _, counted, tokens_counted
from engine.server_log.explain import Explanation, Setting, explain, notes_on
from engine.server_log.start import LogLine, PartName, ServerLog, ServerStart, read_log
from views.elements.charts import draw_chart, line_chart
from views.elements.memory_bar import BarPart, bar
from views.html_parts import draw_list, escaped, figures, notice
from views.url_values import TextRule

LONGEST = 1_000_000
LOG = TextRule("server_log", N_("Log"), LONGEST)
MOST_LINES = 200
"""Lines that are explained one by one."""
LONGEST_LINE = 400
PART_NAMES: Mapping[PartName, str] = {
    "weights": N_("Weights"),
    "peak": N_("Weights and activations at their peak"),
    "non_torch": N_("Other libraries"),
    "activation": N_("Activations at their peak"),
    "graphs": N_("CUDA graphs"),
    "kv": N_("KV cache"),
    "free": N_("Unused"),
    "outside": N_("Outside this server's share"),
}
DIRECTIONS = {"up": N_("raise"), "down": N_("lower"), "on": N_("set"), "off": N_("remove")}


def decoded(text: str) -> ServerLog:
    """The log as it was read, once for each text of this tab; nothing of it is kept anywhere else."""
    known = st.session_state.get("decoded_log")
    if known is None or known[0] != text:
        known = st.session_state["decoded_log"] = (text, read_log(text))
    log: ServerLog = known[1]
    return log


def draw_picture(log: ServerLog) -> None:
    """Memory of one GPU, the pool in figures, and the pool's usage over the lines of statistics."""
    start = log.starts[-1]
    known = sum(1 for _line in log.known)
    if rows := _figures(start):
        st.html(figures(rows))
    if start.parts:
        st.html(bar(_("Memory of one GPU"), _memory(start)))
    if start.full_requests is not None:
        st.html(bar(_("The pool, in full-length requests"), _pool(start)))
    if len([moment for moment in start.moments if moment.usage is not None]) > 1:
        _draw_moments(start)
    if not known:
        st.html(notice(_("No line here is about the memory of vLLM or SGLang.")))
    elif not start.parts and start.num_tokens is None and len(start.moments) < 2:
        st.html(notice(_("These lines hold no sizes to draw. They are explained below.")))


def draw_notes(log: ServerLog) -> None:
    """How many lines were read, and what only several together show."""
    known = sum(1 for _line in log.known)
    sentence = counted("{n} line is about memory.", "{n} lines are about memory.", known)
    others = len(log.lines) - known
    if others:
        sentence += " " + counted("{n} other line is left alone.", "{n} other lines are left alone.", others)
    st.text(sentence)
    if log.num_left_out:
        st.html(notice(_("The first {n} lines were read.").format(n=f"{len(log.lines):,}")))
    if sentences := notes_on(log.starts):
        draw_list(sentences)


def draw_lines(log: ServerLog) -> None:
    """Every known line with what it says; settings and what is misread with the first line of a kind."""
    st.header(_("Line by line"))
    seen: set[str] = set()
    rows = []
    for number, line in enumerate(log.known):
        if number == MOST_LINES:
            break
        rows.append(_line(log.starts[line.start], line, seen))
    label = escaped(_("Line by line"))
    lines = f'<ol class="pv-log">{"".join(rows)}</ol>'
    st.html(f'<div class="pv-tall" role="region" tabindex="0" aria-label="{label}">{lines}</div>')
    left = sum(1 for _line in log.known) - len(rows)
    if left > 0:
        st.html(
            notice(
                counted("{n} more line is counted but not listed.", "{n} more lines are counted but not listed.", left)
            )
        )


def _figures(start: ServerStart) -> list[tuple[str, str, str]]:
    rows = []
    if start.num_tokens is not None:
        rows.append(("tokens", _("Tokens that fit"), f"{start.num_tokens:,}"))
    if start.num_blocks is not None:
        rows.append(("blocks", _("Blocks"), f"{start.num_blocks:,}"))
    if start.full_requests is not None:
        rows.append(("full_requests", _("Full-length requests"), f"{start.full_requests:.2f}"))
    usages = [moment.usage for moment in start.moments if moment.usage is not None]
    if usages:
        rows.append(("usage", _("Highest usage"), f"{100 * max(usages):.1f} %"))
    if start.num_preemptions is not None:
        rows.append(("preemptions", _("Preemptions"), f"{start.num_preemptions:,}"))
    return rows


def _memory(start: ServerStart) -> list[BarPart]:
    return [BarPart(part.name, _(PART_NAMES[part.name]), f"{part.gib:.2f} GiB", part.gib) for part in start.parts]


def _pool(start: ServerStart) -> list[BarPart]:
    """One part a request of full length, the rest of the pool as the last; many of them are one part."""
    times = start.full_requests or 0.0
    longest = int(start.value("max_model_len") or 0)
    whole = int(times)
    parts = []
    if 0 < whole <= 3:
        parts = [BarPart("kv", _("one full-length request"), tokens_counted(longest), 1.0) for _number in range(whole)]
    elif whole:
        name = counted("{n} full-length request", "{n} full-length requests", whole)
        parts = [BarPart("kv", name, _("{tokens} each").format(tokens=tokens_counted(longest)), float(whole))]
    if not whole:
        missing = BarPart(
            "outside", _("missing"), _("{share} of a request").format(share=f"{1 - times:.2f}"), 1 - times
        )
        return [BarPart("kv", _("the pool"), _("{share} of a request").format(share=f"{times:.2f}"), times), missing]
    rest = times - whole
    if rest > 0.005:
        parts.append(
            BarPart("free", _("room for shorter ones"), _("{share} of a request").format(share=f"{rest:.2f}"), rest)
        )
    return parts


def _draw_moments(start: ServerStart) -> None:
    table = pd.DataFrame(
        [
            {
                N_("Line"): moment.line,
                N_("Usage, in percent"): None if moment.usage is None else round(100 * moment.usage, 1),
                N_("Hit rate, in percent"): None if moment.hit_rate is None else round(100 * moment.hit_rate, 2),
            }
            for moment in start.moments
        ]
    )
    columns = [name for name in ("Usage, in percent", "Hit rate, in percent") if table[name].notna().any()]
    figure = line_chart(table, "Line", columns, _("percent"))
    figure.update_layout(height=220, xaxis={"dtick": None}, yaxis={"range": [0, 105]})
    draw_chart(figure, table[["Line", *columns]], _("Pool usage, line by line"), key="log_usage")


def _line(start: ServerStart, line: LogLine, seen: set[str]) -> str:
    text = line.text if len(line.text) <= LONGEST_LINE else f"{line.text[:LONGEST_LINE]}…"
    explained = []
    for reading, explanation in zip(line.readings, explain(start, line), strict=True):
        name = f"{reading.kind} {reading.values.get('counts', '')}"
        explained.append(_explanation(explanation, is_first=name not in seen))
        seen.add(name)
    return f'<li value="{line.number}"><code>{escaped(text)}</code>{"".join(explained)}</li>'


def _explanation(explanation: Explanation, *, is_first: bool) -> str:
    said = f"<p><b>{escaped(explanation.title)}.</b> {escaped(' '.join(explanation.sentences))}</p>"
    if not is_first:
        return said
    if explanation.settings:
        said += f"<ul>{''.join(_settings(explanation.settings))}</ul>"
    if explanation.misread:
        label = _("Often misread:")
        said += f'<p class="misread"><b>{escaped(label)}</b> {escaped(explanation.misread)}</p>'
    return said


def _settings(settings: Iterable[Setting]) -> Iterable[str]:
    for setting in settings:
        yield (
            f"<li>{escaped(_(DIRECTIONS[setting.direction]))} <code>{escaped(setting.name)}</code>: "
            f"{escaped(_(setting.effect))}</li>"
        )
