"""What one start of a server said, put together: how its memory is divided, how large its pool is, what happened since.

A log may hold several starts; the next one begins with the first line about weights or the profile run after a line
about the pool. Ranks of one start print the same lines again: the smallest pool is the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.server_log.shapes import Reading, Value, block_size_of, readings_of

MAX_LINES = 20_000
BYTES_PER_GIB = 1024**3
USUAL_BLOCK_SIZE = 16
"""Of vLLM on a GPU, where nothing else is said."""
_POOL = frozenset({"blocks", "kv_size", "concurrency", "sgl_limits", "too_long_tokens", "too_long_memory"})
"""Of SGLang the line at the end of a start: a draft model loads after the pool of the model has been printed."""
_BEGINS = frozenset({"weights", "profile", "budget", "sgl_weights_begin"})
_KEPT = (
    "total_gib", "utilization", "budget_gib", "weights_gib", "non_torch_gib", "activation_gib", "consumed_gib",
    "graphs_gib", "peak_gib", "kv_gib", "k_gib", "v_gib", "num_blocks", "num_cpu_blocks", "num_tokens",
    "window_tokens", "max_model_len", "concurrency", "attention_block", "max_running", "left_gib",
)  # fmt: skip
_SMALLEST = {"num_tokens", "num_blocks", "kv_gib", "concurrency"}
_LARGEST = {"k_gib", "v_gib"}
"""A draft model has a smaller pool beside the model's."""
PartName = Literal["weights", "peak", "non_torch", "activation", "graphs", "kv", "outside", "free"]


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """A part of one GPU's memory, in GiB.

    "peak" is weights and activations in one figure, "outside" what `gpu_memory_utilization` leaves to others.
    """

    name: PartName
    gib: float


@dataclass(frozen=True, slots=True)
class StatisticsLine:
    """One line of statistics. `usage` and `hit_rate`: 0 to 1, None where the line does not say."""

    line: int
    running: int | None
    waiting: int | None
    usage: float | None
    hit_rate: float | None


@dataclass
class ServerStart:
    """`values`: by the names of engine/server_log/shapes.py, one GPU's where it says memory.

    block_size: as the log says it, or None. num_printed: how often the size of the pool was printed.
    pool_bounds: the tokens that the pool can have, by lines that print both tokens held and their share.
    """

    values: dict[str, float] = field(default_factory=dict)
    block_size: int | None = None
    num_printed: int = 0
    moments: list[StatisticsLine] = field(default_factory=list)
    num_preemptions: int | None = None
    pool_bounds: tuple[float, float] | None = None
    new_tokens: int = 0
    cached_tokens: int = 0

    def value(self, name: str) -> float | None:
        """One value; None where no line of this start says it."""
        return self.values.get(name)

    @property
    def num_tokens(self) -> int | None:
        """Tokens that the pool holds, as printed or as blocks times their size; for hybrid models see `is_hybrid`."""
        if "num_tokens" in self.values:
            return int(self.values["num_tokens"])
        return int(self.values["num_blocks"]) * self.tokens_per_block if "num_blocks" in self.values else None

    @property
    def tokens_per_block(self) -> int:
        """The block size that the log says, else the usual one."""
        return self.block_size or USUAL_BLOCK_SIZE

    @property
    def num_blocks(self) -> int | None:
        """Blocks of `tokens_per_block` tokens: as printed, or the printed tokens counted in them; None for hybrids."""
        if "num_blocks" in self.values:
            return int(self.values["num_blocks"])
        tokens = self.values.get("num_tokens")
        return None if tokens is None or self.is_hybrid or self.is_sglang else int(tokens) // self.tokens_per_block

    @property
    def is_sglang(self) -> bool:
        """Whether the pool was printed by SGLang, which counts tokens and no blocks."""
        return bool({"k_gib", "max_running", "window_tokens"} & self.values.keys())

    @property
    def is_hybrid(self) -> bool:
        """Whether layers of different kinds share the pool, so that tokens times bytes is not its memory."""
        if "attention_block" in self.values or "window_tokens" in self.values:
            return True
        tokens, longest = self.values.get("num_tokens"), self.values.get("max_model_len")
        concurrency = self.values.get("concurrency")
        if not tokens or not longest or concurrency is None:
            return False
        return abs(tokens / longest - concurrency) > 0.0051 + 1 / longest

    @property
    def usable_tokens(self) -> int | None:
        """Tokens of full-length requests that fit: of a hybrid model what the concurrency says, else `num_tokens`."""
        longest, concurrency = self.values.get("max_model_len"), self.values.get("concurrency")
        if self.is_hybrid and longest and concurrency is not None:
            return int(concurrency * longest)
        return self.num_tokens

    @property
    def kv_gib(self) -> float | None:
        """Memory of the pool on one GPU."""
        if "kv_gib" in self.values:
            return self.values["kv_gib"]
        return self.values["k_gib"] + self.values["v_gib"] if {"k_gib", "v_gib"} <= self.values.keys() else None

    @property
    def kib_per_token(self) -> float | None:
        """What one token takes of the pool on one GPU, in KiB; None for hybrid models."""
        tokens, kv_gib = self.num_tokens, self.kv_gib
        if not tokens or kv_gib is None or self.is_hybrid:
            return None
        return kv_gib * BYTES_PER_GIB / tokens / 1024

    @property
    def full_requests(self) -> float | None:
        """Requests of `max_model_len` tokens that the pool holds at once."""
        if "concurrency" in self.values:
            return self.values["concurrency"]
        tokens, longest = self.num_tokens, self.values.get("max_model_len")
        return tokens / longest if tokens and longest else None

    @property
    def parts(self) -> list[MemoryPart]:
        """One GPU's memory, part by part, as far as the log tells; together the whole GPU where it tells that."""
        v = self.values
        found: dict[PartName, float | None] = {
            "weights": v.get("weights_gib"),
            "peak": None if "weights_gib" in v else v.get("peak_gib"),
            "non_torch": v.get("non_torch_gib"),
            "activation": v.get("activation_gib"),
            "graphs": v.get("graphs_gib"),
            "kv": self.kv_gib,
        }
        if found["weights"] is None and "consumed_gib" in v:
            found["weights"] = v["consumed_gib"]
        elif found["non_torch"] is None and "consumed_gib" in v:
            found["non_torch"] = max(v["consumed_gib"] - v["weights_gib"], 0.0)
        if found["activation"] is None and {"peak_gib", "weights_gib"} <= v.keys():
            found["activation"] = max(v["peak_gib"] - v["weights_gib"], 0.0)
        parts = [MemoryPart(name, gib) for name, gib in found.items() if gib is not None and gib > 0]
        total = v.get("total_gib")
        if total is not None and self.kv_gib is not None:
            left = total - sum(part.gib for part in parts)
            outside = min(total * (1 - v.get("utilization", 1.0)), left)  # graphs may have taken some of it
            parts += [MemoryPart("free", left - outside)] if left - outside > 0.05 else []
            parts += [MemoryPart("outside", outside)] if outside > 0.05 else []
        elif "left_gib" in v and self.kv_gib is not None:
            parts.append(MemoryPart("free", v["left_gib"]))
        return parts

    def add(self, line: int, reading: Reading) -> None:
        """Take over what one line says."""
        values = reading.values
        for name in _KEPT:
            if name in values:
                self._keep(name, float(values[name]))
        if reading.kind == "attention_block":
            self.block_size = int(values["attention_block"])
        if reading.kind in ("kv_size", "blocks", "sgl_pool"):
            self.num_printed += 1
        if reading.kind == "preempted" and "count" in values:
            self.num_preemptions = int(values["count"])
        if reading.kind == "sgl_retract":
            self.num_preemptions = (self.num_preemptions or 0) + int(values.get("retracted", 1))
        if reading.kind == "sgl_prefill":
            self.new_tokens += int(values["new_tokens"])
            self.cached_tokens += int(values["cached_tokens"])
        if reading.kind in ("stats", "sgl_prefill", "sgl_decode"):
            self.moments.append(_moment(line, reading))
        if reading.kind == "sgl_decode":
            self._narrow(int(values["held_tokens"]), float(values["usage"]))
        if reading.kind == "metric":
            self._add_metric(values)

    def _keep(self, name: str, value: float) -> None:
        before = self.values.get(name, value)
        self.values[name] = (
            min(value, before) if name in _SMALLEST else max(value, before) if name in _LARGEST else value
        )

    def _narrow(self, held: int, usage: float) -> None:
        """A share is printed with two decimals."""
        if usage < 0.01:
            return
        low, high = held / (usage + 0.005), held / (usage - 0.005)
        if self.pool_bounds is not None:
            both = max(low, self.pool_bounds[0]), min(high, self.pool_bounds[1])
            low, high = both if both[0] <= both[1] else (low, high)
        self.pool_bounds = (low, high)

    def _add_metric(self, values: Mapping[str, Value]) -> None:
        counts, value = values["counts"], float(values["value"])
        names = {"pool": "num_tokens", "max_model_len": "max_model_len", "running_limit": "max_running"}
        if counts in names:
            self._keep(names[str(counts)], value)
        if counts == "preemptions":
            self.num_preemptions = int(value)
        if counts == "config":
            for label, name in (("label_num_gpu_blocks", "num_blocks"), ("label_num_cpu_blocks", "num_cpu_blocks")):
                if isinstance(values.get(label), int):
                    self._keep(name, float(values[label]))
            if isinstance(values.get("label_block_size"), int):
                self.block_size = int(values["label_block_size"])
            if isinstance(values.get("label_gpu_memory_utilization"), float):
                self._keep("utilization", float(values["label_gpu_memory_utilization"]))


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line and what it says. `start`: which of the starts it belongs to, from 0."""

    number: int
    text: str
    readings: tuple[Reading, ...]
    start: int


@dataclass(frozen=True, slots=True)
class ServerLog:
    """`lines`: all of them, also those that say nothing about memory. num_left_out: lines beyond the limit."""

    lines: tuple[LogLine, ...]
    starts: tuple[ServerStart, ...]
    num_left_out: int = 0

    @property
    def known(self) -> Iterator[LogLine]:
        """The lines that say something about memory."""
        return (line for line in self.lines if line.readings)


def read_log(text: str) -> ServerLog:
    """Read a pasted log, or a page of `/metrics`: the first `MAX_LINES` lines of it."""
    lines: list[LogLine] = []
    starts = [ServerStart()]
    has_pool = False
    texts = text.splitlines()
    for number, line in enumerate(texts[:MAX_LINES], 1):
        readings = tuple(readings_of(line))
        kinds = {reading.kind for reading in readings}
        if has_pool and kinds & _BEGINS:
            starts.append(ServerStart())
            has_pool = False
        block_size = block_size_of(line)
        if block_size is not None and starts[-1].block_size is None:
            starts[-1].block_size = block_size
        for reading in readings:
            starts[-1].add(number, reading)
        has_pool = has_pool or bool(kinds & _POOL)
        lines.append(LogLine(number, line, readings, len(starts) - 1))
    return ServerLog(tuple(lines), tuple(starts), max(len(texts) - MAX_LINES, 0))


def _moment(line: int, reading: Reading) -> StatisticsLine:
    values, scale = reading.values, 100 if reading.kind == "stats" else 1

    def whole(name: str) -> int | None:
        return int(values[name]) if name in values else None

    usage = float(values["usage"]) / scale if "usage" in values else None
    hit_rate = float(values["hit_rate"]) / 100 if "hit_rate" in values else None
    return StatisticsLine(line, whole("running"), whole("waiting"), usage, hit_rate)
