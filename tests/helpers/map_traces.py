"""Traces to draw: real engine runs on scripted words, one for each thing the memory map must show."""

from __future__ import annotations

from collections.abc import Callable

from course.recorded_runs import FOLDER
from course.reserved_space.scene import one_reservation
from course.scripted_engine import scripted_engine
from course.sharing.figure_9 import figure_9
from engine.config import EngineConfig
from engine.engine import Engine
from engine.sampling_params import SamplingParams
from engine.trace.trace import Trace
from tests.helpers.contiguous_traces import paper_figure_3, scattered_gaps

HOSTILE_WORDS = (
    "<img/src=x/onerror=alert(1)>",
    "$5",
    "**b**",
    ":red[x]",
    "`t`",
    "👩‍👩‍👧‍👦",
    "日本語",
    "مرحبا",
    "<script>document.title='pwned'</script>",
    "</svg>",
    "&amp;",
    "{{x}}",
)


def fox() -> Trace:
    """11 tokens on blocks of 4 in a pool of 9: table 0 -> 6, 1 -> 1, 2 -> 8. One token a step after the prompt."""
    config = EngineConfig(block_size=4, num_blocks=9, free_order=(6, 1, 8), enable_prefix_caching=False)
    words = ["crossed", "the", "quiet", "field", "and", "slept", "until", "dawn"]
    engine = scripted_engine(config, {"A": words})
    engine.add_request("The red fox", SamplingParams(max_tokens=len(words)))
    return _finished(engine)


def two_answers() -> Trace:
    """One prompt of 6 tokens, two samples: shared blocks, then a copy on write in the half-filled second block."""
    config = EngineConfig(block_size=4, num_blocks=12, max_num_seqs=4)
    engine = scripted_engine(config, {"A": ["ran", "over", "hills", "fast"], "A#1": ["hid", "in", "the", "barn"]})
    engine.add_request("The red fox saw us and", SamplingParams(max_tokens=4, n=2))
    return _finished(engine)


def three_answers() -> Trace:
    """Three samples of one prompt in a pool as large as the live page opens with: 32 blocks of 4."""
    endings = {"A": ["named", "Leo", "lived"], "A#1": ["named", "Ella", "slept"], "A#2": ["went", "home", "early"]}
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=32, max_num_seqs=4), endings)
    engine.add_request("Once upon a time there was a robot", SamplingParams(max_tokens=3, n=3))
    return _finished(engine)


def busy() -> Trace:
    """Five requests, a prefix they share, a pool too small for all: queues, cached blocks, preemption, swap."""
    config = EngineConfig(
        block_size=4,
        num_blocks=14,
        num_cpu_blocks=6,
        max_num_seqs=4,
        max_num_batched_tokens=16,
        preemption_mode="swap",
    )
    names = ["A", "B", "C", "D", "E"]
    engine = scripted_engine(config, {n: [f"{n.lower()}{i}" for i in range(14)] for n in names})
    for name in names:
        engine.add_request(f"You are a kind helper . Say {name} twice", SamplingParams(max_tokens=12))
    return _finished(engine)


def hostile() -> Trace:
    """Words that would break a page that trusts them."""
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=6), {"A": HOSTILE_WORDS[6:]})
    engine.add_request(" ".join(HOSTILE_WORDS[:6]), SamplingParams(max_tokens=len(HOSTILE_WORDS) - 6))
    return _finished(engine)


BLANK_WORDS = ("  ", "a", "\n\n\n", "\t", "b")


def blanks() -> Trace:
    """Tokens of nothing but blanks, tabs and line ends."""
    engine = scripted_engine(EngineConfig(block_size=4, num_blocks=4), {"A": BLANK_WORDS})
    engine.add_request("Blanks", SamplingParams(max_tokens=len(BLANK_WORDS)))
    return _finished(engine)


def beams() -> Trace:
    """The paper's Fig. 9: four beams that share their first blocks."""
    return figure_9().trace


def crowded() -> Trace:
    """A recorded beam search: narrow blocks, many of them free and still findable at its end."""
    return Trace.from_json((FOLDER / "beams.json").read_text("utf-8"))


def gaps() -> Trace:
    """Contiguous memory: gaps of 8, 6 and 10, and a request of 20 refused."""
    return scattered_gaps()[0]


def reservation() -> Trace:
    """Contiguous memory: 16 slots held, 7 used at the end."""
    return one_reservation(16, ["The", "red", "fox", "crossed", "the", "quiet", "field"])


def large() -> Trace:
    """1,024 blocks, 24 requests, 124 steps: drawn small, over several keyframes."""
    return long_run(num_blocks=1024, num_steps=120, num_requests=24)


def long_run(num_blocks: int, num_steps: int, num_requests: int = 4) -> Trace:
    """Requests of growing prompts that all run to the end, in blocks of 16."""
    config = EngineConfig(
        block_size=16,
        num_blocks=num_blocks,
        max_num_seqs=32,
        max_num_batched_tokens=2048,
        max_model_len=num_steps + 1024,
    )
    names = [f"r{i}" for i in range(num_requests)]
    engine = scripted_engine(config, {n: [f"w{i}" for i in range(num_steps)] for n in names})
    for i, name in enumerate(names):
        prompt = " ".join(f"p{i}_{j}" for j in range(100 + 20 * i))
        engine.add_request(prompt, SamplingParams(max_tokens=num_steps), request_id=name)
    return _finished(engine)


def _finished(engine: Engine) -> Trace:
    while engine.has_unfinished_requests():
        engine.step()
    return engine.trace


SCENES: dict[str, Callable[[], Trace]] = {
    "fox": fox,
    "two_answers": two_answers,
    "three_answers": three_answers,
    "busy": busy,
    "hostile": hostile,
    "blanks": blanks,
    "beams": beams,
    "crowded": crowded,
    "gaps": gaps,
    "reservation": reservation,
    "paper_figure_3": paper_figure_3,
    "large": large,
}
