"""The readiness page: nothing before the button is pressed, then every check with its fix."""

from __future__ import annotations

import pytest

from course.finding import Finding
from course.pages import READY
from tests.app.conftest import OpenPage
from tests.helpers.app_html import all_html, sentences
from views.server.readiness import LatestReport, ReadinessReport


def test_the_page_shows_what_the_doctor_found(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = (Finding("Python", "Python 3.12."), Finding("Model", "Not <here>.", "Fetch it."))
    monkeypatch.setattr(LatestReport.__init__, "__defaults__", (lambda: ReadinessReport(findings, "09:30", 4.2),))
    app = open_page(READY.file)
    assert not app.exception
    assert "data-check" not in all_html(app)
    app.button(key="check").click().run()
    assert "Not ready yet: Model. The last column says what to do." in sentences(app)
    html = all_html(app)
    assert 'data-check="Python" data-ready="true"' in html
    assert "<td>Not &lt;here&gt;.</td><td>Fetch it.</td>" in html
    assert "Checked at 09:30, in 4.2 s" in html
