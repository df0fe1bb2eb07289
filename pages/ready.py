"""Is the machine that serves these pages ready for a workshop? The same checks as `python -m tools.doctor`."""

from __future__ import annotations

import streamlit as st

from course.pages import READY
from engine.i18n import N_, _
from views.html_parts import escaped, notice
from views.server.readiness import ReadinessReport, latest_report


def report_html(report: ReadinessReport) -> str:
    """The verdict, and a table with one row for each check."""
    ready, not_ready, label = _("ready"), _("not ready"), escaped(_("Checks"))
    rows = "".join(
        f'<tr data-check="{escaped(finding.name)}" data-ready="{str(finding.is_ready).lower()}">'
        f'<th scope="row">{escaped(finding.name)}</th><td>{ready if finding.is_ready else not_ready}</td>'
        f"<td>{escaped(finding.found)}</td><td>{escaped(finding.fix)}</td></tr>"
        for finding in report.findings
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in (_("Check"), _("State"), _("Found"), _("What to do")))
    caption = escaped(_("Checked at {clock}, in {seconds:.1f} s").format(clock=report.clock, seconds=report.seconds))
    table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'{_verdict(report)}<div class="pv-table" role="region" tabindex="0" aria-label="{label}">{table}</div>'


def _verdict(report: ReadinessReport) -> str:
    if not report.problems:
        return notice(_("This machine is ready."))
    names = ", ".join(finding.name for finding in report.problems)
    return notice(_("Not ready yet: {names}. The last column says what to do.").format(names=names), "problem")


st.title(_(READY.title))
st.markdown(
    _(
        "These checks are about the machine that serves the pages, not the one you look at them with. "
        "They take a few seconds and change nothing."
    )
)
latest = latest_report()
if st.button(_("Check this machine"), key="check"):
    with st.spinner(N_("Checking")):
        latest.refresh()
if latest.report is not None:
    st.html(report_html(latest.report))
st.markdown(_("On the command line: `python -m tools.doctor`. It asks about the port as well."))
