"""Every English text of the lessons, read from the source: what the places that draw words are given.

A place is a call by name (`st.header`, `Figure`, `tell`); its words are the literals among its arguments, also by way
of names, functions and dictionaries' keys. So a text is in the catalogue because a reader can see it, and text that
no place draws is not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from views.course import HOME, LESSONS, SUMMARY
from views.words.language import forms_key, nouns_of
from views.words.places import PLACES, Where
from views.words.script import words_of_script

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "views/course.py", "views/routes.py", *(page.file for page in (HOME, *LESSONS, SUMMARY)), "views/lesson.py",
    "views/lesson_picture.py", "views/frames.py", "views/lessons/*.py", "views/predict.py", "views/kept.py",
    "views/url_values.py", "views/charts.py", "views/tables.py", "views/fork_points.py", "views/batch_comparison.py",
    "views/block_table.py", "views/slot_address.py", "views/narration.py", "views/short_version.py",
    "views/backend_banner.py", "views/glossary.py", "engine/questions/*.py",
)  # fmt: skip
SCRIPTS = "assets/memory_map/js/*.js"
_LETTERS = re.compile(r"[^\W\d_]{2}")
_FIELD = re.compile(r"\{[^}]*\}")


def gather() -> dict[str, str]:
    """English -> English, in the order of the course; counted nouns, with both forms, at the end."""
    texts = dict.fromkeys(text for file in _files() for text in words_of_file(file))
    texts |= dict.fromkeys(words_of_script("\n".join(file.read_text("utf-8") for file in sorted(ROOT.glob(SCRIPTS)))))
    nouns = sorted({forms_key(noun) for text in texts for noun in nouns_of(text)})
    return {text: text for text in (*filter(_is_worded, texts), *nouns)}


def words_of_file(file: Path) -> Iterator[str]:
    """The words that the calls of a file draw."""
    module = _Module.of(file)
    for call in module.calls():
        for where in PLACES.get(name_of(call.func), ()):
            for argument in arguments_at(call, where):
                yield from module.words_in(argument)


def name_of(called: ast.expr) -> str:
    """`header` of `st.header`."""
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def arguments_at(call: ast.Call, where: Where) -> list[ast.expr]:
    """A positional argument by its place, a named one by its name, all positional ones by a slice."""
    if isinstance(where, slice):
        return call.args[where]
    if isinstance(where, int):
        return call.args[where : where + 1]
    return [keyword.value for keyword in call.keywords if keyword.arg == where]


class _Module:
    """A file's syntax, and what its names stand for."""

    def __init__(self, file: Path) -> None:
        self.tree = ast.parse(file.read_text("utf-8"))
        self.modules: dict[str, Path] = {}
        self.meanings: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree):
            self._learn(node)

    @staticmethod
    @lru_cache(maxsize=256)
    def of(file: Path) -> _Module:
        return _Module(file)

    def calls(self) -> Iterator[ast.Call]:
        """In the order of the text."""
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return iter(sorted(calls, key=lambda call: (call.lineno, call.col_offset)))

    def words_in(self, node: ast.expr) -> Iterator[str]:
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.Name(id=name):
                yield from self.words_of_name(name)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in self.modules:
                yield from _Module.of(self.modules[module]).words_of_name(name)
            case ast.Call(func=func, args=arguments):
                if name_of(func) not in PLACES:  # what a place is given is read where it stands
                    yield from self.words_in(func)
                    for argument in arguments if name_of(func) in ("tuple", "list") else ():
                        yield from self.words_in(argument)
            case ast.Dict(keys=keys):
                for key in keys:
                    yield from self.words_in(key) if key else ()
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.BoolOp(values=parts):
                for part in parts:
                    yield from self.words_in(part)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
                yield from self.words_in(part)
            case ast.IfExp(body=one, orelse=other):
                yield from self.words_in(one)
                yield from self.words_in(other)
            case ast.Starred(value=value) | ast.NamedExpr(value=value):
                yield from self.words_in(value)

    def words_of_name(self, name: str) -> Iterator[str]:
        for meaning in self.meanings.pop(name, []):  # once is enough, also where a name stands for itself
            words = list(self.words_in(meaning))
            self.meanings.setdefault(name, []).extend(ast.Constant(text) for text in words)
            yield from words

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.ImportFrom(module=str(package), names=names):
                for name in names:
                    file = ROOT / package.replace(".", "/") / f"{name.name}.py"
                    if file.exists():
                        self.modules[name.asname or name.name] = file
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                for target, value in zip(targets, values, strict=False):
                    self._mean(target, value)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._mean(target, value)
            case ast.For(target=target, iter=several) | ast.comprehension(target=target, iter=several):
                self._mean(target, several)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._mean(target, value)
            case ast.FunctionDef(name=name):
                returns = (part.value for part in ast.walk(node) if isinstance(part, ast.Return))
                self.meanings.setdefault(name, []).extend(value for value in returns if value is not None)

    def _mean(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.meanings.setdefault(target.id, []).append(value)


def _files() -> Iterator[Path]:
    for source in SOURCES:
        yield from sorted(ROOT.glob(source))


def _is_worded(text: str) -> bool:
    """Whether there is something to translate: letters outside the fields."""
    return _LETTERS.search(_FIELD.sub("", text)) is not None
