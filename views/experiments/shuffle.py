"""Experiment "Shuffle memory": one permutation with the tables and without them, as frames, tables and replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.config import EngineConfig
from engine.sampling_params import SamplingParams
from engine.usage import usage_of
from views.experiments.controls import LONGEST_PROMPT
from views.experiments.replies import reply_beside, reply_list
from views.frames import Payload, Scene, scenes_payload
from views.html_parts import escaped, notice
from views.lesson_picture import renamed, words_of_frame
from views.narration import sentences
from views.server import ReadyModel
from views.token_chips import chip
from views.told import Facts, Figure, tell
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from engine.lab.shuffle import ShuffledRun, ShuffleReport
    from engine.lab.shuffled_memory import Moment, RowFound, TableFound

KEY, MOMENT, SEQUENCE = "shuffle", "moment", "A"
Move = Literal["untouched", "with_tables", "memory_only"]
NOTHING: Move = "untouched"
WITH_TABLES: Move = "with_tables"
MEMORY_ONLY: Move = "memory_only"
MOVES: dict[str, Move] = {move: move for move in (MEMORY_ONLY, WITH_TABLES, NOTHING)}
MOVE = ChoiceRule("move", "What moves", tuple(MOVES))
PROMPT = TextRule("prompt", "Prompt", LONGEST_PROMPT)
DEFAULT_PROMPT = "Once upon a time, a small robot"
BLOCK_SIZE = NumberRule("block_size", "Block size", 1, 16, 4)
NUM_BLOCKS = NumberRule("num_blocks", "Blocks", 2, 128, 8)
MAX_TOKENS = NumberRule("max_tokens", "New tokens at most", 4, 32, 24)
AFTER = NumberRule("after", "Move after step", 1, 16, 6)
SEED = NumberRule("seed", "Seed of the move", 0, 9_999, 1)

FIGURES = (
    Figure("Tokens found where the table looks", "{found.num_right} of {found.num_wanted}"),
    Figure("Blocks used", "{usage.num_used_blocks}"),
    Figure("Blocks in the pool", "{usage.num_blocks}"),
)
TITLES = {
    NOTHING: "Nothing moved",
    WITH_TABLES: "Blocks and tables moved",
    MEMORY_ONLY: "Memory moved, tables did not",
}
SAYS = {
    MEMORY_ONLY: "All contents change places, and no table is told. This is memory as it is, not as the log has it."
}
ENDED_EARLY = (
    "The reply ended in step {last_step}, and the move comes after step {report.after_step}. "
    "Move earlier, or ask for more."
)
NO_TABLE = f"{SEQUENCE} holds no block at this moment. Move the slider."
BEFORE = "**Nothing has moved.** Every row of the table finds its tokens."
BEATS = {
    NOTHING: BEFORE,
    WITH_TABLES: (
        "**Memory and tables have moved together.** Every block lies elsewhere, every row names its new place, and "
        "every token is found. The engine notices nothing."
    ),
    MEMORY_ONLY: (
        "**Only memory has moved.** The rows still name the old places. There lies another block of the text, "
        "or nothing at all, and attention reads it all the same. What is written from now on goes where the table says."
    ),
}


@dataclass(frozen=True)
class Inputs:
    """What decides the result."""

    model: str
    prompt: str
    block_size: int
    num_blocks: int
    max_tokens: int
    after: int
    seed: int


@dataclass(frozen=True)
class Frames:
    """One run's moments. Values count them from 0; `moved` is the one right after the move."""

    moments: tuple[Moment, ...]
    payload: Payload
    found: tuple[TableFound, ...]
    moved: int

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(range(len(self.moments)))


@dataclass(frozen=True)
class Shuffled:
    """The report, and each run as frames, by what moved."""

    report: ShuffleReport
    frames: dict[Move, Frames]
    model: ReadyModel

    def why_too_late(self) -> str:
        """A sentence when the reply had ended before anything moved; else nothing."""
        last_step = self.report.untouched.trace.num_steps
        if last_step > self.report.after_step:
            return ""
        return tell(ENDED_EARLY, {"report": self.report, "last_step": last_step})

    def run(self, move: Move) -> ShuffledRun:
        return {
            NOTHING: self.report.untouched,
            WITH_TABLES: self.report.with_tables,
            MEMORY_ONLY: self.report.memory_only,
        }[move]


def shuffle(model: ReadyModel, inputs: Inputs) -> Shuffled:
    """The prompt three times. Raises ValueError with a sentence when it cannot run in this pool."""
    from engine.lab.scratch import parts_maker  # torch comes with it
    from engine.lab.shuffle import shuffle_experiment

    config = EngineConfig(
        model=inputs.model,
        block_size=inputs.block_size,
        num_blocks=inputs.num_blocks,
        max_model_len=inputs.block_size * inputs.num_blocks,
        max_num_batched_tokens=max(inputs.block_size * inputs.num_blocks, 8),
        enable_prefix_caching=False,
    )
    report = shuffle_experiment(
        parts_maker(model.weights),
        config,
        [inputs.prompt],
        SamplingParams(max_tokens=inputs.max_tokens),
        after_step=inputs.after,
        seed=inputs.seed,
    )
    return Shuffled(report, {move: _frames(report, move) for move in MOVES.values()}, model)


def _frames(report: ShuffleReport, move: Move) -> Frames:
    from engine.lab.shuffled_memory import moments, table_found

    all_moments = tuple(moments(report, move))
    tables = tuple(table_found(moment.state, SEQUENCE) for moment in all_moments)
    payload = scenes_payload((_scene(moment, move) for moment in all_moments), title=TITLES[move])
    moved = next((i for i, moment in enumerate(all_moments) if moment.is_move), len(all_moments) - 1)
    for index, (moment, found) in enumerate(zip(all_moments, tables, strict=True)):
        beat = BEATS[move] if index >= moved else BEFORE
        payload["frames"][index] |= words_of_frame(FIGURES, (beat,), _facts(moment, found))
    return Frames(all_moments, renamed(payload), tables, moved)


def _scene(moment: Moment, move: Move) -> Scene:
    if not moment.is_move:
        return Scene(f"step {moment.step}", moment.state, sentences(moment.events), moment.events)
    say = [SAYS[move]] if move in SAYS else sentences(moment.events)
    return Scene(f"step {moment.step}, moved", moment.state, say, moment.events)


def _facts(moment: Moment, found: TableFound) -> Facts:
    return {"usage": usage_of(moment.state), "found": found}


def replies(shuffled: Shuffled, move: Move) -> str:
    """The untouched reply, and below it the one with the move."""
    display, run = shuffled.model.weights.tokenizer.display, shuffled.run(move)
    healthy = shuffled.report.untouched.replies[0]
    drawn = [reply_beside(TITLES[NOTHING], NOTHING, healthy, None, None, display)]
    if move != NOTHING:
        [reply], [difference] = run.replies, run.first_differences
        drawn.append(reply_beside(TITLES[move], move, reply, healthy, difference, display))
    return reply_list(drawn)


def table_against_memory(found: TableFound) -> str:
    """What each row of the block table stands for, and what lies where it looks."""
    if not found.rows:
        return notice(NO_TABLE)
    body = "".join(_row(row) for row in found.rows)
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("Logical block", "Table says", "Looks for", "Finds there", "Right")
    )
    caption = f"Block table of {SEQUENCE}, held against memory"
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{caption}"><table data-found-by="{SEQUENCE}">'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: RowFound) -> str:
    wanted = "".join(chip(piece) for piece in row.wanted)
    found = "".join(
        '<span class="pv-piece empty">nothing</span>' if content is None
        else chip(content.piece, "" if content.piece == piece else "differs")
        for piece, content in zip(row.wanted, row.found, strict=True)
    )  # fmt: skip
    right = f"{row.num_right} of {len(row.wanted)}"
    return (
        f'<tr><th scope="row">{row.logical_index}</th><td>block {row.block_id}</td><td>{wanted}</td>'
        f"<td>{found}</td><td>{escaped(right)}</td></tr>"
    )
