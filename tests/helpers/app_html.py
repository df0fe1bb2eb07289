"""What `st.html` drew, read as a person would: figures, sentences, tables."""

from __future__ import annotations

import re
from html import unescape

from streamlit.testing.v1 import AppTest


def all_html(app: AppTest) -> str:
    """Everything that `st.html` drew on the page."""
    return "\n".join(element.proto.body for element in app.get("html"))


def figure(app: AppTest, key: str) -> str:
    """The figure with this key. Fails when there is none, or more than one."""
    [value] = re.findall(rf'data-figure="{key}">(.*?)</dd>', all_html(app))
    return unescape(value)


def sentences(app: AppTest) -> list[str]:
    """The notices on the page."""
    return [unescape(text) for text in re.findall(r'<div class="pv-notice[^>]*><p>(.*?)</p>', all_html(app))]


def table_rows(app: AppTest, seq_id: str) -> list[list[str]]:
    """A block table without its last column: logical block, physical block, slots, filled, held by."""
    [table] = re.findall(rf'data-block-table="{seq_id}">(.*?)</table>', all_html(app), re.DOTALL)
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", table, re.DOTALL)
    return [[unescape(cell) for cell in re.split(r"</t[hd]>(?:<td[^>]*>)?", row)[:5]] for row in rows]
