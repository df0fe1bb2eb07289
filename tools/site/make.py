"""Each lesson's page of the app, run once without a browser, as a document of its own.

Pictures, words and numbers are those that the page itself draws at its first values: nothing is told here again.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Element, Node

from course.lesson import Lesson
from course.pages import LESSONS, lesson_number
from engine.i18n import _
from tools.site.markdown import to_html
from views.memory_map.document import document, map_place

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
INDEX = "index.html"
TITLE = "See PagedAttention work"
START = "pip install -r requirements.txt && streamlit run app.py"
STYLE = """
main { max-width: 64rem; margin: 0 auto; font: 1.05rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0.6rem 0; }
h2 { font-size: 1.2rem; }
a { color: var(--link); }
nav, .links { display: flex; flex-wrap: wrap; gap: 0 1.5rem; padding: 0.4rem 0; }
.map { margin: 1rem 0; }
code { font-size: 0.95em; overflow-wrap: anywhere; }
ol.lessons li { margin: 0 0 0.6rem; }
"""


def make_site(folder: Path, live: str = "") -> list[Path]:
    """Write `index.html` and one file a lesson; returns their paths. `live`: the address where the app runs, if any."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {INDEX: _index(live)} | {_file(lesson): _lesson_page(lesson, live) for lesson in LESSONS}
    for name, text in pages.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in pages]


def _file(lesson: Lesson) -> str:
    return f"{lesson.url_path}.html"


def _index(live: str) -> str:
    items = "".join(
        f'<li><a href="{_file(lesson)}">{html.escape(_(lesson.title))}</a><br>{html.escape(_(lesson.promise))}</li>'
        for lesson in LESSONS
    )
    promise = _("How a language model's keys and values are kept in blocks that may lie anywhere: lessons to play.")
    body = f'<h1>{TITLE}</h1><p>{html.escape(promise)}</p><ol class="lessons">{items}</ol>{_where_it_is_live(live)}'
    return document(TITLE, body, [], style=STYLE, description=promise)


def _lesson_page(lesson: Lesson, live: str) -> str:
    page = _run(lesson)
    picture = _container(page, "lesson_picture")
    maps = [json.loads(node.proto.json) for node in _nodes(picture) if _is_map(node)]
    body = (
        f'<nav aria-label="{html.escape(_("Lessons"))}">{_links(lesson)}</nav><h1>{html.escape(_(lesson.title))}</h1>'
        f"{_prose(_container(page, 'lesson_controls'))}"
        f"{''.join(map_place() for _map in maps)}{_html_of(picture)}"
        f"<h2>{html.escape(_('What to notice'))}</h2>{_prose(_container(page, 'lesson_notes'))}"
        f'{_in_words(maps[0]["payload"])}{_where_it_is_live(live, lesson)}<p class="links">{_links(lesson)}</p>'
    )
    return document(_(lesson.title), body, maps, style=STYLE, description=_(lesson.promise))


def _run(lesson: Lesson) -> AppTest:
    """The page at its first values. Raises RuntimeError with what the page failed with."""
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    test.switch_page(lesson.file).run()
    if test.exception:
        raise RuntimeError(f"{lesson.file}: {test.exception[0].message}")
    return test


def _container(test: AppTest, key: str) -> Block:
    return next(node for node in _nodes(test.main) if isinstance(node, Block) and getattr(node, "key", None) == key)


def _nodes(block: Block) -> Iterator[Node]:
    for child in block.children.values():
        yield child
        if isinstance(child, Block):
            yield from _nodes(child)


def _elements(block: Block) -> list[Element]:
    """What stands right in this container."""
    return [child for child in block.children.values() if isinstance(child, Element)]


def _is_map(node: Node) -> bool:
    return node.type == "bidi_component" and getattr(node.proto, "component_name", "") == "memory_map"


def _prose(block: Block) -> str:
    """The markdown right in this container; what is folded in it is not part of the page's line of thought."""
    texts = [str(child.value) for child in _elements(block) if child.type == "markdown"]
    return "".join(map(to_html, texts))


def _html_of(block: Block) -> str:
    """What the page itself wrote as HTML around its picture: whatever came from people is escaped in it already."""
    return "".join(str(node.value) for node in _elements(block) if node.type == "html")


def _in_words(payload: dict[str, Any]) -> str:
    """The first map's frames as a list, for who sees no picture and for search engines."""
    items = "".join(
        f"<li>{html.escape(frame['label'])}: {html.escape(frame.get('headline') or '')}</li>"
        for frame in payload["frames"]
    )
    return f"<details><summary>{html.escape(_('The picture in words'))}</summary><ol>{items}</ol></details>"


def _links(lesson: Lesson) -> str:
    number = lesson_number(lesson) or 1
    before = LESSONS[number - 2] if number > 1 else None
    after = LESSONS[number] if number < len(LESSONS) else None
    links = [f'<a href="{INDEX}">{html.escape(_("All lessons"))}</a>']
    for other, text in ((before, _("Previous: {name}")), (after, _("Next: {name}"))):
        if other is not None:
            links.append(f'<a href="{_file(other)}">{html.escape(text.format(name=_(other.title)))}</a>')
    return "".join(links)


def _where_it_is_live(live: str, lesson: Lesson | None = None) -> str:
    """Where the engine itself can be tried: at an address, or on the reader's own machine."""
    own = f"<code>{html.escape(START)}</code>"
    words = html.escape(_("These pictures are recorded. On your own machine the engine runs live:"))
    if not live:
        return f"<p>{words} {own}</p>"
    address = f"{live.rstrip('/')}/{lesson.url_path if lesson else ''}"
    link = html.escape(_("The live version of this page"))
    return f'<p><a href="{html.escape(address)}">{link}</a>. {words} {own}</p>'
