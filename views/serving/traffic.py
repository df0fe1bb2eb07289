"""The page that counts traffic: hit rate by the size of the pool, a system prompt's cost, and the engine's count.

The text is read in this tab's script and kept in its session: nothing of it is stored, logged, or sent on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from engine.i18n import N_, _, blocks_counted, counted, tokens_counted
from engine.model.tokenizer import ByteTokenizer, Tokenizer
from engine.traffic.blocks import BlockTrace, block_sizes_of, block_trace
from engine.traffic.cache_replay import Counted, replay_one_at_a_time, replay_together
from engine.traffic.formats import Kind, Traffic, read_traffic
from engine.traffic.hit_curve import PoolResult, hit_curve, pool_sizes_for
from engine.traffic.shared_prefix import shared_prefix
from views.elements.charts import draw_chart, frame_table, line_chart
from views.html_parts import draw_list, figures, notice, small
from views.server.model_registry import default_model, model_registry
from views.serving.pasted import pasted_text
from views.trace.file_picker import TakenFile, pick_file, taken_file
from views.url_values import TextRule

TRAFFIC = TextRule("traffic_text", N_("Requests"), 1_000_000)
_PICKER, _FILE = "traffic_file", "traffic_file_taken"
MOST_REPLAYED = 500
MOST_REPLAYED_TOKENS = 60_000
"""What the engine replays within a second or two."""
AT_ONCE = 8
FORMATS: dict[Kind, str] = {
    "prompts": N_("prompts, one JSON object a line"),
    "sharegpt": N_("ShareGPT conversations, the first two turns of each"),
    "mooncake": N_("hash ids of blocks of 512 tokens"),
    "azure": N_("lengths only: they do not say what is shared, so there are no hits"),
    "prefix_repetition": N_("options of vLLM's prefix_repetition"),
    "nothing": N_("no request"),
}
_DESKS = ("travel", "payroll", "building", "computers")
_QUESTIONS = ("Where do I start?", "Who decides?", "How long does it take?", "Can I do it by telephone?")
_DESK = (
    "You are the {desk} desk of a small company. Answer in two sentences, politely, and never make up a telephone "
    "number. Question: {question}"
)
EXAMPLES = {
    N_("Four system prompts"): "\n".join(
        json.dumps({"prompt": _DESK.format(desk=desk, question=question), "output_tokens": 40})
        for question in _QUESTIONS * 2
        for desk in _DESKS
    ),
    N_("Hash ids"): "\n".join(
        f'{{"timestamp": {250 * row}, "input_length": {length}, "output_length": 40, "hash_ids": {ids}}}'
        for row, (length, ids) in enumerate(
            (
                (1300, [1, 2, 3]),
                (1700, [1, 2, 4, 5]),
                (1300, [1, 2, 3]),
                (512, [6]),
                (2048, [1, 2, 4, 7]),
                (1700, [1, 2, 4, 5]),
            )
        )
    ),
    N_("Options of vLLM"): (
        "--dataset-name prefix_repetition --prefix-repetition-prefix-len 512 --prefix-repetition-suffix-len 128 "
        "--prefix-repetition-num-prefixes 5 --prefix-repetition-output-len 128 --num-prompts 100"
    ),
}


@dataclass(frozen=True)
class CountedTraffic:
    """A text's requests, their blocks, and one result for each size of the pool."""

    traffic: Traffic
    trace: BlockTrace
    results: Sequence[PoolResult]

    def hit_rate(self, hit_blocks: int) -> float:
        """The share of the prompt tokens that are found, 0 to 1."""
        return hit_blocks * self.trace.block_size / max(self.trace.num_prompt_tokens, 1)


def draw_input() -> CountedTraffic | None:
    """File, text and block size; None, and why, while there is no request to count."""
    file: TakenFile | None = st.session_state.get(_FILE)
    if file is None:
        text = pasted_text(TRAFFIC, _("Requests"), next(iter(EXAMPLES.values())), height=150)
        pick_file(_("Or open a file"), ".jsonl,.json,.csv,.txt", key=_PICKER, on_pick=_take)
    else:
        text = file.text
        st.text(file.name)
        st.button(_("Another file"), key="another_traffic_file", on_click=_forget)
        if file.problem:
            st.html(notice(file.problem, "problem"))
            return None
    tokenizer, name = _tokenizer()
    try:
        traffic = _read(text, tokenizer, name)
    except ValueError as error:
        st.html(notice(str(error), "problem"))
        return None
    _draw_problems(traffic, name)
    if not len(traffic):
        st.html(notice(_("There is no request here to count."), "problem"))
        return None
    sizes = block_sizes_of(traffic)
    block_size = st.selectbox(_("Block size"), sizes, key=f"traffic_block_size_{sizes[0]}")
    return _count(text, traffic, name, block_size)


def draw_picture(counts: CountedTraffic) -> None:
    """The curve, and what the largest pool finds."""
    best = counts.results[-1]
    st.html(
        figures(
            [
                ("requests", _("Requests"), f"{len(counts.traffic):,}"),
                ("prompt_tokens", _("Prompt tokens"), f"{counts.trace.num_prompt_tokens:,}"),
                ("best", _("Hit rate with nothing evicted"), f"{100 * counts.hit_rate(best.hit_blocks):.1f} %"),
            ]
        )
    )
    table = pd.DataFrame(
        [
            {
                N_("Blocks in the pool"): result.num_blocks,
                N_("Hit rate, in percent"): round(100 * counts.hit_rate(result.hit_blocks), 2),
                N_("Evictions"): result.num_evicted,
            }
            for result in counts.results
        ]
    )
    figure = line_chart(table, "Blocks in the pool", ["Hit rate, in percent"], _("percent"), steps=True)
    sizes = table["Blocks in the pool"].tolist()
    ticks = {"tickvals": sizes[::3], "ticktext": [f"{size:,}" for size in sizes[::3]]}
    figure.update_layout(xaxis={"type": "log", "dtick": None, **ticks}, yaxis={"range": [0, 105]})
    draw_chart(figure, table, _("Hit rate by pool size"), key="traffic_curve")


def draw_shared_prefix(counts: CountedTraffic) -> None:
    """What the beginning that most requests share costs, with and without a cache."""
    prefix = shared_prefix(counts.trace)
    st.header(_("What a system prompt costs"))
    if not prefix.num_blocks:
        st.text(_("No prefix of a whole block is shared by half of the requests."))
        return
    facts = {
        "requests": counted("{n} request", "{n} requests", prefix.num_requests),
        "tokens": tokens_counted(prefix.num_tokens),
        "blocks": blocks_counted(prefix.num_blocks),
        "all": f"{prefix.computed_without_cache:,}",
        "saved": f"{prefix.saved_at_most:,}",
    }
    st.text(_("{requests} begin with the same {tokens} ({blocks}).").format(**facts))
    st.text(
        _(
            "Without a prefix cache, {all} tokens are computed for it. Once it is cached, {saved} of them are saved."
        ).format(**facts)
    )


def draw_engine_count(counts: CountedTraffic) -> None:
    """The same requests through our engine, for a pool of the reader's choice, beside the curve's count."""
    st.header(_("Counted by the engine"))
    sizes = [result.num_blocks for result in counts.results]
    size = st.selectbox(_("Blocks in the pool"), sizes, len(sizes) // 2, key=f"traffic_pool_{hash(tuple(sizes))}")
    [result] = [each for each in counts.results if each.num_blocks == size]
    if len(counts.traffic) > MOST_REPLAYED or counts.trace.num_prompt_tokens > MOST_REPLAYED_TOKENS:
        st.html(
            notice(
                _(
                    "The engine replays at most {requests} requests and {tokens} tokens here; this traffic has more."
                ).format(requests=MOST_REPLAYED, tokens=f"{MOST_REPLAYED_TOKENS:,}")
            )
        )
        return
    alone, together = _replayed(counts, size)
    rows = [
        (_("curve"), result.hit_blocks, result.num_evicted, 0),
        (_("engine, one request at a time"), alone.hit_blocks, alone.num_evicted, alone.num_preempted),
    ]
    if together is not None:
        name = counted("engine, {n} request at a time", "engine, {n} requests at a time", AT_ONCE)
        rows.append((name, together.hit_blocks, together.num_evicted, together.num_preempted))
    table = pd.DataFrame(
        [
            {
                N_("Counted by"): name,
                N_("Blocks hit"): hits,
                N_("Hit rate, in percent"): f"{100 * counts.hit_rate(hits):.2f}",
                N_("Evictions"): evicted,
                N_("Preemptions"): preempted,
            }
            for name, hits, evicted, preempted in rows
        ]
    )
    st.html(frame_table(table, _("A pool of {blocks}").format(blocks=blocks_counted(size))))
    draw_list(
        [
            _("One request at a time, the curve and the engine agree block for block."),
            _(
                "With several at a time, running requests hold blocks, so fewer are left for the cache, and "
                "requests that start together cannot hit each other's blocks yet. A preempted request hits "
                "its own blocks again."
            ),
        ]
    )


def _take() -> None:
    st.session_state[_FILE] = taken_file(_PICKER)


def _forget() -> None:
    st.session_state.pop(_FILE, None)


def _tokenizer() -> tuple[Tokenizer, str]:
    """The tokenizer of the model that runs here, with its name; bytes until it has loaded."""
    model = model_registry().request(default_model()).model
    return (ByteTokenizer(), "") if model is None else (model.weights.tokenizer, str(model.weights.name))


def _read(text: str, tokenizer: Tokenizer, name: str) -> Traffic:
    key = (hash(text), len(text), name)
    known = st.session_state.get("traffic_read")
    if known is None or known[0] != key:
        known = st.session_state["traffic_read"] = (key, read_traffic(text.splitlines(), tokenizer.encode))
    traffic: Traffic = known[1]
    return traffic


def _count(text: str, traffic: Traffic, name: str, block_size: int) -> CountedTraffic:
    key = (hash(text), len(text), name, block_size)
    known = st.session_state.get("traffic_counted")
    if known is None or known[0] != key:
        trace = block_trace(traffic, block_size)
        counts = CountedTraffic(traffic, trace, hit_curve(trace, pool_sizes_for(trace)))
        known = st.session_state["traffic_counted"] = (key, counts)
    found: CountedTraffic = known[1]
    return found


def _replayed(counts: CountedTraffic, num_blocks: int) -> tuple[Counted, Counted | None]:
    """One at a time; and together, where blocks are small enough for the engine."""
    size = counts.trace.block_size
    alone = replay_one_at_a_time(counts.traffic, size, num_blocks)
    return alone, None if counts.traffic.hashed else replay_together(counts.traffic, size, num_blocks, AT_ONCE)


def _draw_problems(traffic: Traffic, name: str) -> None:
    st.html(small(_("Read as: {format}").format(format=_(FORMATS[traffic.kind]))))
    if traffic.kind in ("prompts", "sharegpt"):
        sentence = _("Tokenized with {model}.").format(model=name) if name else _("Tokenized as bytes.")
        st.html(small(sentence))
    for line, why in traffic.problems[:5]:
        st.html(notice(_("Line {line} is skipped: {why}.").format(line=line, why=why), "problem"))
    left = traffic.num_unusable - len(traffic.problems[:5])
    if left > 0:
        st.html(small(counted("{n} more line is skipped.", "{n} more lines are skipped.", left)))
