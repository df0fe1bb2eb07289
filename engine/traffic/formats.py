"""Formats of traffic: which requests a text holds, and which of its lines cannot be used, and why.

    {"prompt": "You are a clerk ...", "output_tokens": 20}          vLLM's custom dataset, one a line
    {"timestamp": 0, "input_length": 1300, "output_length": 40, "hash_ids": [1, 2, 3]}        Mooncake, one a line
    [{"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}]}]    ShareGPT, one array
    TIMESTAMP,ContextTokens,GeneratedTokens                          Azure: lengths alone, so nothing is ever shared
    --dataset-name prefix_repetition --prefix-repetition-num-prefixes 5 ...    vLLM's options, no file

A hash id stands for 512 tokens and all before them; the last one of a row may be a partial block.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from engine.i18n import _

Encode = Callable[[str], Sequence[int]]
Kind = Literal["prompts", "sharegpt", "mooncake", "azure", "prefix_repetition", "nothing"]
HASH_BLOCK = 512
"""Tokens of a block that a hash id stands for."""
MOST_NAMED = 20
MOST_TOKENS = 100_000_000
_AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
_OPTION = re.compile(r"--(?:prefix-repetition-)?([a-z-]+)[= ]+(\d{1,9})")


class UnusableLineError(ValueError):
    """A line that is no request; the message says why."""


@dataclass
class Traffic:
    """Requests in order, as flat arrays: one entry a request in `num_prompt` and `num_output`, in tokens.

    items: token ids of all prompts, or hash ids; `ends` says where each request's end. num_unusable: lines skipped, the
    first of them named in `problems` as (line number, why).
    """

    kind: Kind = "nothing"
    num_prompt: array[int] = field(default_factory=lambda: array("q"))
    num_output: array[int] = field(default_factory=lambda: array("q"))
    items: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    problems: list[tuple[int, str]] = field(default_factory=list)
    num_unusable: int = 0

    def __len__(self) -> int:
        return len(self.num_prompt)

    @property
    def hashed(self) -> bool:
        """Whether `items` are hash ids of blocks of 512 tokens."""
        return self.kind == "mooncake"

    def items_of(self, index: int) -> array[int]:
        """Token ids, or hash ids, of one request."""
        return self.items[self.ends[index - 1] if index else 0 : self.ends[index]]

    def add(self, items: Iterable[int], num_prompt: int, num_output: int) -> None:
        """Append one request."""
        self.items.extend(items)
        self.ends.append(len(self.items))
        self.num_prompt.append(num_prompt)
        self.num_output.append(max(num_output, 1))

    def skip(self, line: int, why: str) -> None:
        """Name a line that cannot be used."""
        self.num_unusable += 1
        if len(self.problems) < MOST_NAMED:
            self.problems.append((line, why))


def read_traffic(lines: Iterable[str], encode: Encode) -> Traffic:
    """Read a file, by its lines or a whole text's. `encode` turns prompts into token ids."""
    found = iter(lines)
    first = next((line for line in found if line.strip()), "")
    start = first.lstrip("\ufeff").strip()
    if start.startswith("["):
        return _share_gpt("".join(chain([first], found)), encode)
    if start.replace(" ", "") == _AZURE:
        return _azure(found)
    if "prefix_repetition" in start:
        return _prefix_repetition(" ".join(chain([start], found)))
    return _json_lines(chain([first], found), encode)


# -- one JSON object a line --


def _json_lines(lines: Iterable[str], encode: Encode) -> Traffic:
    traffic = Traffic()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _object(line)
            kind: Kind = "mooncake" if "hash_ids" in row else "prompts"
            items, num_prompt, num_output = _mooncake(row) if kind == "mooncake" else _prompt(row, encode)
            if traffic.kind not in ("nothing", kind):
                raise UnusableLineError(_("its format differs from the lines before it"))
        except UnusableLineError as error:
            traffic.skip(number, str(error))
            continue
        traffic.kind = kind
        traffic.add(items, num_prompt, num_output)
        _check_size(traffic)
    return traffic


def _object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise UnusableLineError(_("it is not JSON")) from None
    if not isinstance(row, dict):
        raise UnusableLineError(_("it is not a JSON object"))
    return row


def _mooncake(row: dict[str, Any]) -> tuple[Sequence[int], int, int]:
    ids, length, output = row["hash_ids"], row.get("input_length"), row.get("output_length", 1)
    if not isinstance(ids, list) or not all(type(each) is int and abs(each) < 2**63 for each in ids):
        raise UnusableLineError(_("hash_ids is not a list of whole numbers"))
    if type(length) is not int or length < 1 or type(output) is not int or output < 0:
        raise UnusableLineError(_("input_length and output_length must be whole numbers"))
    if len(ids) != -(-length // HASH_BLOCK):
        raise UnusableLineError(
            _("{n} hash ids do not fit {length} tokens: one stands for {size}").format(
                n=len(ids), length=length, size=HASH_BLOCK
            )
        )
    return ids, length, output


def _prompt(row: dict[str, Any], encode: Encode) -> tuple[Sequence[int], int, int]:
    prompt, output = row.get("prompt"), row.get("output_tokens", row.get("max_tokens", 1))
    if prompt is None and isinstance(row.get("messages"), list):
        prompt = "\n".join(str(each.get("content", "")) for each in row["messages"] if isinstance(each, dict))
    if not isinstance(prompt, str) or not prompt:
        raise UnusableLineError(_('it has no "prompt", no "messages" and no "hash_ids"'))
    if type(output) is not int or not 0 <= output < 10**7:
        raise UnusableLineError(_("output_tokens is not a whole number"))
    tokens = encode(prompt)
    if not tokens:
        raise UnusableLineError(_("its prompt has no tokens"))
    return tokens, len(tokens), output


# -- the others --


def _share_gpt(text: str, encode: Encode) -> Traffic:
    """The first two turns of each entry, as vLLM's benchmark takes them."""
    traffic = Traffic("sharegpt")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        traffic.skip(1, _("it is not JSON"))
        return traffic
    for number, entry in enumerate(entries, 1):
        turns = entry.get("conversations") if isinstance(entry, dict) else None
        texts = [turn.get("value") for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
        if len(texts) < 2 or not isinstance(texts[0], str) or not isinstance(texts[1], str):
            traffic.skip(number, _("it has fewer than two turns"))
            continue
        tokens = encode(texts[0])
        if not tokens:
            traffic.skip(number, _("its prompt has no tokens"))
            continue
        traffic.add(tokens, len(tokens), len(encode(texts[1])))
        _check_size(traffic)
    return traffic


def _azure(lines: Iterator[str]) -> Traffic:
    """Lengths only: every prompt counts as one that nobody else has."""
    traffic, unused = Traffic("azure"), 0
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        parts = line.strip().split(",")
        if (
            len(parts) != 3
            or not all(part.strip().isdigit() and len(part) < 9 for part in parts[1:])
            or not int(parts[1])
        ):
            traffic.skip(number, _("it does not hold a time and two whole numbers"))
            continue
        length = int(parts[1])
        traffic.add(range(unused, unused + length), length, int(parts[2]))
        unused += length
        _check_size(traffic)
    return traffic


def _prefix_repetition(text: str) -> Traffic:
    """`num-prompts // num-prefixes` prompts of each prefix, as in vLLM, which shuffles them; here they come in turn."""
    options = {"prefix-len": 256, "suffix-len": 256, "num-prefixes": 10, "output-len": 128, "num-prompts": 1000}
    options |= {name: int(value) for name, value in _OPTION.findall(text)}
    traffic = Traffic("prefix_repetition")
    prefix, suffix, number = options["prefix-len"], options["suffix-len"], options["num-prefixes"]
    if not number or prefix + suffix < 1:
        traffic.skip(1, _("it asks for no prefix or no tokens"))
        return traffic
    for index in range(options["num-prompts"] // number * number):
        shared = (index % number) * prefix
        own = number * prefix + index * suffix
        traffic.add(
            chain(range(shared, shared + prefix), range(own, own + suffix)), prefix + suffix, options["output-len"]
        )
        _check_size(traffic)
    return traffic


def _check_size(traffic: Traffic) -> None:
    if len(traffic.items) > MOST_TOKENS:
        raise ValueError(
            _("The file has more than {most:,} tokens, the most that is read. Take a part of it.").format(
                most=MOST_TOKENS
            )
        )
