"""Experiment "Shuffle memory": one permutation with the tables and without them, as frames, tables and replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from course.messages import Facts, fill
from course.shuffle.lesson import LESSON
from engine.config import EngineConfig
from engine.i18n import N_, _
from engine.sampling_params import SamplingParams
from engine.trace.usage import usage_of
from views.elements.token_chips import chip, reply_card, reply_cards
from views.figures import Figure
from views.html_parts import escaped, notice
from views.lab.controls import LONGEST_PROMPT
from views.lesson_picture import renamed, words_of_frame
from views.memory_map.frames import LabelledState, Payload, states_payload
from views.memory_map.narration import sentences
from views.server.model_registry import ReadyModel
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from course.shuffle.experiment import ShuffledRun, ShuffleReport
    from course.shuffle.memory import MemorySnapshot, RowFound, TableFound

KEY, MOMENT, SEQUENCE = LESSON.key, "moment", "A"
Move = Literal["untouched", "with_tables", "memory_only"]
NOTHING: Move = "untouched"
WITH_TABLES: Move = "with_tables"
MEMORY_ONLY: Move = "memory_only"
MOVES: dict[str, Move] = {move: move for move in (NOTHING, WITH_TABLES, MEMORY_ONLY)}
MOVE = ChoiceRule("move", N_("What moves"), tuple(MOVES))
PROMPT = TextRule("prompt", N_("Prompt"), LONGEST_PROMPT)
DEFAULT_PROMPT = "Once upon a time, a small robot"
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, 16, 4)
NUM_BLOCKS = NumberRule("num_blocks", N_("Blocks"), 2, 128, 8)
MAX_TOKENS = NumberRule("max_tokens", N_("New tokens at most"), 4, 32, 24)
AFTER = NumberRule("after", N_("Move after step"), 1, 16, 6)
SEED = NumberRule("seed", N_("Seed of the move"), 0, 9_999, 1)

FIGURES = (
    Figure(N_("Tokens found through the block table"), N_("{found.num_right} of {found.num_wanted}")),
    Figure(N_("Blocks used"), "{usage.num_used_blocks}"),
    Figure(N_("Blocks in the pool"), "{usage.num_blocks}"),
)
TITLES = {
    NOTHING: N_("Nothing moved"),
    WITH_TABLES: N_("Blocks and tables moved"),
    MEMORY_ONLY: N_("Memory moved, tables did not"),
}
SAYS = {MEMORY_ONLY: N_("All blocks move, and no block table is updated. The picture shows memory, not the log.")}
ENDED_EARLY = N_(
    "The reply ended in step {last_step}, but the move is set after step {report.after_step}. Move earlier, or "
    "ask for more tokens."
)
NO_TABLE = N_("{sequence} holds no block at this moment. Move the slider.")
BEFORE = N_("**Nothing has moved.** Every row of the block table leads to the right tokens.")
CAPTIONS = {
    NOTHING: BEFORE,
    WITH_TABLES: (
        N_(
            "**Blocks moved and tables were updated.** Every block is elsewhere, every row has its new place, "
            "and every token is found. The engine's result does not change."
        )
    ),
    MEMORY_ONLY: (
        N_(
            "**Only memory has moved.** The rows still have the old places. Another block of the text is there "
            "now, or nothing at all, and attention reads it anyway. New tokens are written where the table "
            "says."
        )
    ),
}


@dataclass(frozen=True)
class ShuffleInputs:
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
    """One run's moments. Values count them from 0; `moved` is the one right after the move, or where it would be."""

    moments: tuple[MemorySnapshot, ...]
    payload: Payload
    found: tuple[TableFound, ...]
    moved: int

    @property
    def values(self) -> tuple[int, ...]:
        """The moments, counted from 0."""
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
        return fill(ENDED_EARLY, {"report": self.report, "last_step": last_step})

    def run(self, move: Move) -> ShuffledRun:
        """The run in which `move` was made."""
        return {
            NOTHING: self.report.untouched,
            WITH_TABLES: self.report.with_tables,
            MEMORY_ONLY: self.report.memory_only,
        }[move]


def shuffle(model: ReadyModel, inputs: ShuffleInputs) -> Shuffled:
    """The prompt three times. Raises ValueError with a sentence when it cannot run in this pool."""
    from course.shuffle.experiment import shuffle_experiment
    from engine.inspect.scratch import components_factory  # torch comes with it

    config = EngineConfig(
        model=inputs.model,
        block_size=inputs.block_size,
        num_blocks=inputs.num_blocks,
        max_model_len=inputs.block_size * inputs.num_blocks,
        max_num_batched_tokens=max(inputs.block_size * inputs.num_blocks, 8),
        enable_prefix_caching=False,
    )
    report = shuffle_experiment(
        components_factory(model.weights),
        config,
        [inputs.prompt],
        SamplingParams(max_tokens=inputs.max_tokens),
        after_step=inputs.after,
        seed=inputs.seed,
    )
    return Shuffled(report, {move: _frames(report, move) for move in MOVES.values()}, model)


def _frames(report: ShuffleReport, move: Move) -> Frames:
    from course.shuffle.memory import moments, table_found

    all_moments = tuple(moments(report, move))
    tables = tuple(table_found(moment.state, SEQUENCE) for moment in all_moments)
    payload = states_payload((_scene(moment, move) for moment in all_moments), title=_(TITLES[move]))
    moved = next((i for i, moment in enumerate(all_moments) if moment.is_move), report.after_step)
    moved = min(moved, len(all_moments) - 1)
    for index, (moment, found) in enumerate(zip(all_moments, tables, strict=True)):
        caption = CAPTIONS[move] if index >= moved else BEFORE
        payload["frames"][index] |= words_of_frame(FIGURES, (caption,), _facts(moment, found))
    return Frames(all_moments, renamed(payload), tables, moved)


def _scene(moment: MemorySnapshot, move: Move) -> LabelledState:
    if not moment.is_move:
        return LabelledState(
            _("step {value}").format(value=moment.step), moment.state, sentences(moment.events), moment.events
        )
    say = [_(SAYS[move])] if move in SAYS else sentences(moment.events)
    return LabelledState(_("step {value}, moved").format(value=moment.step), moment.state, say, moment.events)


def _facts(moment: MemorySnapshot, found: TableFound) -> Facts:
    return {"usage": usage_of(moment.state), "found": found}


def replies(shuffled: Shuffled, move: Move) -> str:
    """The untouched reply, and below it the one with the move."""
    display, run = shuffled.model.weights.tokenizer.display, shuffled.run(move)
    healthy = shuffled.report.untouched.replies[0]
    drawn = [reply_card(_(TITLES[NOTHING]), NOTHING, healthy, None, None, display)]
    if move != NOTHING:
        [reply], [difference] = run.replies, run.first_differences
        drawn.append(reply_card(_(TITLES[move]), move, reply, healthy, difference, display))
    return reply_cards(drawn)


def table_against_memory(found: TableFound) -> str:
    """What each row of the block table stands for, and what lies where it looks."""
    if not found.rows:
        return notice(_(NO_TABLE).format(sequence=SEQUENCE))
    body = "".join(_row(row) for row in found.rows)
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in (_("Logical block"), _("Block table"), _("Expected tokens"), _("Found"), _("Right"))
    )
    caption = _("{sequence}'s block table compared with memory").format(sequence=SEQUENCE)
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{caption}"><table data-found-by="{SEQUENCE}">'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: RowFound) -> str:
    nothing, block = _("nothing"), _("block {block_id}").format(block_id=row.block_id)
    wanted = "".join(chip(piece) for piece in row.wanted)
    found = "".join(
        f'<span class="pv-piece empty">{escaped(nothing)}</span>' if content is None
        else chip(content.piece, "" if content.piece == piece else "differs")
        for piece, content in zip(row.wanted, row.found, strict=True)
    )  # fmt: skip
    right = _("{num_right} of {num_wanted}").format(num_right=row.num_right, num_wanted=len(row.wanted))
    return (
        f'<tr><th scope="row">{row.logical_index}</th><td>{escaped(block)}</td><td>{wanted}</td>'
        f"<td>{found}</td><td>{escaped(right)}</td></tr>"
    )
