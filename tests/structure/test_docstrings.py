"""Every public module, class and function says what it does; every function of tensors says their shapes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("engine", "kernels", "course", "views", "tools")
Function = ast.FunctionDef | ast.AsyncFunctionDef
SHAPE = re.compile(r"\[[^\[\]]*\w[^\[\]]*\]|any shape")
"""`[num_tokens, hidden_size]`, or a function that takes a tensor of any shape."""
SEE = re.compile(r"^See [A-Z]\w+|kernels[./]interface")
"""A docstring that names the protocol which says the shapes."""


def files_of(*layers: str) -> list[Path]:
    return [file for layer in layers for file in sorted((ROOT / layer).rglob("*.py"))]


def class_bodies() -> dict[str, list[ast.ClassDef]]:
    """Every class of the project by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for file in files_of(*LAYERS):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def names_of_bases(node: ast.ClassDef) -> list[str]:
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in bases]


def overrides_documented(node: ast.ClassDef, name: str, classes: Mapping[str, list[ast.ClassDef]]) -> bool:
    """Whether a base class of the project has a method of this name with a docstring."""
    for base in (found for name_ in names_of_bases(node) for found in classes.get(name_, [])):
        own = [n for n in base.body if isinstance(n, Function) and n.name == name]
        if any(ast.get_docstring(n) for n in own) or overrides_documented(base, name, classes):
            return True
    return False


def undocumented(tree: ast.Module, classes: Mapping[str, list[ast.ClassDef]]) -> Iterator[str]:
    """Public names without a docstring. A method of a private class counts as private."""
    if not ast.get_docstring(tree):
        yield "the module"
    for node in tree.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node):
            yield node.name
        if isinstance(node, ast.ClassDef):
            methods = (m for m in node.body if isinstance(m, Function) and not m.name.startswith("_"))
            for method in methods:
                if not ast.get_docstring(method) and not overrides_documented(node, method.name, classes):
                    yield f"{node.name}.{method.name}"


@pytest.mark.parametrize("layer", LAYERS)
def test_every_public_name_has_a_docstring(layer: str) -> None:
    classes = class_bodies()
    missing = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in files_of(layer)
        for name in undocumented(ast.parse(file.read_text("utf-8")), classes)
    ]
    assert missing == []


def test_a_missing_docstring_is_detected() -> None:
    source = '''"""M."""
class Base:
    """B."""
    def told(self):
        """Yes."""
class Child(Base):
    """C."""
    def told(self): ...
    def silent(self): ...
    def _private(self): ...
def also_silent(): ...
'''
    tree = ast.parse(source)
    classes = {node.name: [node] for node in tree.body if isinstance(node, ast.ClassDef)}
    assert list(undocumented(tree, classes)) == ["Child.silent", "also_silent"]


def takes_or_returns_a_tensor(node: Function) -> bool:
    """By its annotations; a tensor within a list or a tuple counts, a function of tensors does not."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    annotations = [ast.unparse(a) for a in (*(argument.annotation for argument in arguments), node.returns) if a]
    return any(re.search(r"\bTensor\b", text) and not text.startswith("Callable") for text in annotations)


def says_shapes(node: Function, lines: list[str], classes: Mapping[str, list[ast.ClassDef]], owner: str) -> bool:
    """In the docstring, in a comment of the signature, or by the protocol or base class that it names."""
    doc = ast.get_docstring(node) or ""
    comments = " ".join(line.partition("#")[2] for line in lines[node.lineno - 1 : node.body[0].lineno - 1])
    if SHAPE.search(doc) or SHAPE.search(comments) or SEE.search(doc):
        return True
    own = classes.get(owner, [])
    if node.name == "__call__" and any(SHAPE.search(ast.get_docstring(found) or "") for found in own):
        return True
    return any(overrides_documented(found, node.name, classes) for found in own)


def shapeless(file: Path, classes: Mapping[str, list[ast.ClassDef]]) -> Iterator[str]:
    text = file.read_text("utf-8")
    tree = ast.parse(text)
    owners: list[ast.Module | ast.ClassDef] = [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]
    for owner in owners:
        for node in owner.body:
            if not isinstance(node, Function) or not takes_or_returns_a_tensor(node):
                continue
            if not says_shapes(node, text.splitlines(), classes, getattr(owner, "name", "")):
                yield f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


@pytest.mark.parametrize("layer", ["engine", "kernels"])
def test_every_function_of_tensors_documents_shapes(layer: str) -> None:
    classes = class_bodies()
    assert [line for file in files_of(layer) for line in shapeless(file, classes)] == []


def test_a_missing_shape_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / "module.py"
    file.write_text(
        'def bare(x: Tensor) -> int:\n    """Counts."""\n'
        'def shaped(x: Tensor) -> int:\n    """`x` [num_tokens] int64."""\n'
        "def commented(\n    x: list[Tensor],  # [num_tokens] each\n):\n    pass\n"
        "def of_functions(x: Callable[[Tensor], int]): ...\n"
    )
    assert list(shapeless(file, {})) == ["module.py:1 bare"]
