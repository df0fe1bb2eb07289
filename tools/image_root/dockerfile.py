"""Reads a Dockerfile and a .dockerignore: what this project uses of their language. Anything else is refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

KEYWORDS = {"FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "CMD"}


class DockerfileError(ValueError):
    """What cannot be run here, with its line."""


@dataclass(frozen=True)
class Instruction:
    """`RUN a && b` in one line, continuation lines joined."""

    keyword: str
    value: str
    line: int


@dataclass(frozen=True)
class Stage:
    """`FROM base AS name` and what follows. `base` is an image or the name of an earlier stage."""

    name: str
    base: str
    instructions: tuple[Instruction, ...]


def read_stages(text: str) -> list[Stage]:
    """The stages of a Dockerfile. Raises DockerfileError for what comes before the first, or is not known here."""
    stages: list[Stage] = []
    for instruction in _instructions(text):
        if instruction.keyword == "FROM":
            base, name = re.fullmatch(r"(\S+)\s+AS\s+(\S+)", instruction.value, re.IGNORECASE).groups()  # type: ignore[union-attr]
            stages.append(Stage(name, base, ()))
        elif not stages or instruction.keyword not in KEYWORDS:
            raise DockerfileError(f"line {instruction.line}: {instruction.keyword} is not known here")
        else:
            stage = stages.pop()
            stages.append(Stage(stage.name, stage.base, (*stage.instructions, instruction)))
    return stages


def needed_stages(stages: Iterable[Stage], target: str) -> list[Stage]:
    """`target` and the stages that it is made from, in the order of the file. Raises KeyError for an unknown target."""
    by_name = {stage.name: stage for stage in stages}
    needed, left = set(), [target]
    while left:
        stage = by_name[left.pop()]
        needed.add(stage.name)
        sources = [stage.base, *re.findall(r"--from=(\S+)", " ".join(each.value for each in stage.instructions))]
        left += [name for name in sources if name in by_name and name not in needed]
    return [stage for stage in by_name.values() if stage.name in needed]


def filled(text: str, variables: Mapping[str, str]) -> str:
    """With `$NAME` and `${NAME}` replaced; an unknown one is empty, as in Docker."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda match: variables.get(match[1] or match[2], ""), text)


def pairs(text: str) -> dict[str, str]:
    """`A=1 B="two words"` of an ENV or ARG; an ARG without a value is not in it."""
    return dict(word.split("=", 1) for word in shlex.split(text) if "=" in word)


def context_files(folder: Path, ignore: str) -> Iterator[PurePosixPath]:
    """Files below `folder` that `COPY . .` takes, relative to it. ignore: the text of a .dockerignore."""
    rules = [_rule(line.strip()) for line in ignore.splitlines() if line.strip() and not line.startswith("#")]
    for path in sorted(folder.rglob("*")):
        relative = PurePosixPath(path.relative_to(folder).as_posix())
        if path.is_file() and not _is_ignored(relative, rules):
            yield relative


def _instructions(text: str) -> Iterator[Instruction]:
    """Joined lines. Comments stand alone on a line, also between continued ones."""
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        start = start if joined else number
        if line.rstrip().endswith("\\"):
            joined += line.rstrip()[:-1] + " "
            continue
        keyword, _, value = (joined + line).strip().partition(" ")
        yield Instruction(keyword.upper(), value.strip(), start)
        joined = ""


def _rule(line: str) -> tuple[bool, re.Pattern[str]]:
    """Whether a match is taken in again (`!`), and what matches."""
    pattern = re.escape(line.removeprefix("!").strip("/")).replace(r"\*\*/", "(?:.*/)?")
    return line.startswith("!"), re.compile(pattern.replace(r"\*", "[^/]*").replace(r"\?", "[^/]"))


def _is_ignored(path: PurePosixPath, rules: Iterable[tuple[bool, re.Pattern[str]]]) -> bool:
    """The last rule that matches the path or a folder above it decides."""
    ignored = False
    for takes_in, pattern in rules:
        if any(pattern.fullmatch(str(each)) for each in (path, *path.parents)):
            ignored = not takes_in
    return ignored
