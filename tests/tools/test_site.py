"""The static site's prose: the markdown that the course uses, and nothing else, becomes HTML."""

from __future__ import annotations

import pytest

from tools.site.__main__ import main
from tools.site.markdown import to_html


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One **strong** and *soft* word.", "<p>One <strong>strong</strong> and <em>soft</em> word.</p>"),
        ("Two\nlines.\n\nMore.", "<p>Two lines.</p><p>More.</p>"),
        ("- `a * b` is\n- **it**", "<ul><li><code>a * b</code> is</li><li><strong>it</strong></li></ul>"),
        ("[a](https://a.example/x_y)", '<p><a href="https://a.example/x_y">a</a></p>'),
        ("[a](javascript:x) <b>", "<p>[a](javascript:x) &lt;b&gt;</p>"),
        ("", ""),
    ],
)
def test_prose_becomes_html(text: str, expected: str) -> None:
    assert to_html(text) == expected


def test_an_address_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["folder", "--live", "javascript:alert(1)"])
    assert "begins with http" in capsys.readouterr().err
