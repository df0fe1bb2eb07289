"""The page that decodes a log, without a browser."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.app.conftest import OpenPage

HOSTILE = "<img src=x onerror=alert(1)> GPU KV cache size: 1,600 tokens **b** $x$"


def html_of(app: AppTest) -> str:
    return "\n".join(element.proto.body for element in app.get("html"))


def test_the_example_is_decoded_and_another_one_replaces_it(open_page: OpenPage) -> None:
    app = open_page("pages/decode_log.py")
    assert not app.exception
    html = html_of(app)
    assert 'data-figure="tokens">23,648<' in html
    assert 'data-figure="full_requests">0.82<' in html
    assert "Often misread:" in html and "raise <code>--gpu-memory-utilization</code>" in html
    app.button(key="example_server_log_1").click().run()
    html = html_of(app)
    assert 'data-figure="full_requests">33.04<' in html
    assert 'data-figure="blocks"' not in html


def test_a_pasted_text_is_shown_as_it_is_and_unknown_lines_are_counted(open_page: OpenPage) -> None:
    app = open_page("pages/decode_log.py")
    app.text_area(key="server_log").set_value(f"hello\n{HOSTILE}\nbye").run()
    html = html_of(app)
    assert "&lt;img src=x onerror=alert(1)&gt;" in html and "<img src=x" not in html
    assert 'data-figure="tokens">1,600<' in html
    assert app.text[0].value == "1 line is about memory. 2 other lines are left alone."
    app.text_area(key="server_log").set_value("nothing here").run()
    assert "No line here is about the memory" in html_of(app)


def test_the_text_is_there_again_after_another_page(open_page: OpenPage) -> None:
    app = open_page("pages/decode_log.py")
    app.text_area(key="server_log").set_value("GPU KV cache size: 320 tokens").run()
    app.switch_page("pages/open_trace.py").run()
    app.switch_page("pages/decode_log.py").run()
    assert 'data-figure="tokens">320<' in html_of(app)
