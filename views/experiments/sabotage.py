"""Experiment "Sabotage": which deed, on which prompt; the replies, the wrong reads and the picture that came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.events import ended, span
from engine.scenes.scene import Scene
from engine.usage import usage_of
from views.experiments.controls import LONGEST_PROMPT
from views.experiments.replies import reply_beside, reply_list
from views.html_parts import escaped, notice
from views.lesson_picture import Picture, Telling, picture
from views.server import ReadyModel
from views.token_chips import chip
from views.told import Facts, Figure
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from engine.lab.sabotage import SabotageReport
    from engine.lab.saboteurs import Saboteur
    from engine.lab.watched_memory import WrongRead

KEY, STEP = "sabotage", "step"
DEEDS = {
    "swap": "SwapTableEntries",
    "copy": "SkipCopyOnWrite",
    "free": "FreeSharedBlockEarly",
    "shift": "ShiftSlot",
    "prefix": "PrefixHitCoversLastToken",
}
"""How the address names them, and their names in `engine/lab/saboteurs.py`, which needs torch."""
DEED = ChoiceRule("deed", "Break this", tuple(DEEDS))
PROMPT = TextRule("prompt", "Prompt", LONGEST_PROMPT)
DEFAULT_PROMPT = "The capital of France is Paris, and the capital of Italy is"
BLOCK_SIZE = NumberRule("block_size", "Block size", 1, 16, 4)
MOST_TOKENS = 96
"""Of the prompt: more would make the tables long and say nothing else."""
MOST_SEQUENCES = 3
"""Two samples and a second request: what a scene has at most."""

FIGURES = (
    Figure("Struck after step", "{report.strike_after}"),
    Figure("Rule that names it", "{rule}"),
    Figure("Caught after step", "{caught}"),
    Figure("Wrong reads", "{num_wrong_reads}"),
)
TELLING = Telling(
    label="step {value}",
    figures=(
        Figure("Blocks used", "{usage.num_used_blocks}"),
        Figure("Blocks shared", "{usage.num_shared_blocks}"),
        Figure("Blocks free", "{usage.num_free_blocks}"),
    ),
    more=lambda state: {"usage": usage_of(state)},
)
CAUGHT = "**The engine's own check names it.** After step {caught}: {detail}"
NOT_CAUGHT = "**No rule was broken** in this scene: with this prompt the deed changed nothing that is checked."
DIED = "**The engine stopped.** {report.failure}"
LOG_BELIEVES = "**Nobody told the log.** The picture shows what it believes, which is why all looks well."
LOG_ENDS = (
    "From step {next_step} on the log contradicts itself, so the picture ends at step {report.last_drawable_step}. "
    "The table above goes on."
)
NO_WRONG_READS = "Every read found what it looked for."
UNHARMED = "**No token changed.** The fault is there all the same; the reply was lucky."


@dataclass(frozen=True)
class Inputs:
    """What decides the result."""

    model: str
    deed: str
    prompt: str
    block_size: int


@dataclass(frozen=True)
class Broken:
    """The report, the saboteur's own words, and the broken engine's memory as far as its log can be replayed."""

    report: SabotageReport
    saboteur: Saboteur
    picture: Picture
    model: ReadyModel

    @property
    def first_step_to_see(self) -> int:
        """Where the picture opens: when the fault was caught, or the last moment that can be drawn."""
        return min(self.report.caught_after_step or self.report.strike_after, self.picture.values[-1])

    def facts(self) -> Facts:
        report = self.report
        return {
            "report": report,
            "rule": report.rule or "none",
            "caught": report.caught_after_step if report.rule else "never",
            "detail": ended(report.detail),
            "num_wrong_reads": len(report.wrong_reads),
            "next_step": report.last_drawable_step + 1,
        }

    def verdict(self) -> tuple[str, ...]:
        """Templates over `facts`."""
        report = self.report
        said = [CAUGHT if report.rule else NOT_CAUGHT]
        said += [DIED] if report.failure else []
        said += [] if report.is_reply_wrong else [UNHARMED]
        return tuple(said)

    def about_the_log(self) -> tuple[str, ...]:
        """Templates over `facts`."""
        ends_early = self.report.last_drawable_step < self.report.trace.num_steps
        return LOG_BELIEVES, *([LOG_ENDS] if ends_early else [])


def saboteur_of(deed: str) -> Saboteur:
    from engine.lab import saboteurs  # torch comes with it

    saboteur: Saboteur = getattr(saboteurs, DEEDS[deed])()
    return saboteur


def break_engine(model: ReadyModel, inputs: Inputs) -> Broken:
    """The scene of that deed, healthy and broken. Raises ValueError when the prompt does not suit it."""
    from engine.lab.sabotage import sabotage
    from engine.lab.saboteurs import MAX_TOKENS
    from engine.lab.scratch import parts_maker

    prompt = model.weights.tokenizer.encode(inputs.prompt)
    if not 1 <= len(prompt) <= MOST_TOKENS:
        raise ValueError(f"The prompt needs 1 to {MOST_TOKENS} tokens here; this one has {len(prompt)}.")
    longest = len(prompt) + MAX_TOKENS
    config = EngineConfig(
        model=inputs.model,
        block_size=inputs.block_size,
        num_blocks=MOST_SEQUENCES * (longest // inputs.block_size + 1),
        max_model_len=longest,
        enable_prefix_caching=False,
    )
    saboteur = saboteur_of(inputs.deed)
    report = sabotage(parts_maker(model.weights), config, prompt, saboteur)
    steps = {step: step for step in range(report.last_drawable_step + 1)}
    drawn = picture(Scene(report.trace, steps, "steps"), TELLING, "Memory of the broken engine, as its log tells it")
    return Broken(report, saboteur, drawn, model)


def replies(broken: Broken) -> str:
    """Each sequence as it should be, and as it came."""
    display, drawn = broken.model.weights.tokenizer.display, []
    for pair in broken.report.replies:
        seq_id = pair.healthy.seq_id
        drawn.append(reply_beside(f"{seq_id}, healthy", f"healthy-{seq_id}", pair.healthy, None, None, display))
        drawn.append(
            reply_beside(
                f"{seq_id}, sabotaged",
                f"broken-{seq_id}",
                pair.sabotaged,
                pair.healthy,
                pair.first_difference,
                display,
            )
        )
    return reply_list(drawn)


def reads_table(broken: Broken) -> str:
    """Every wrong read: in which step, by whom, of which block, looking for what, and what it found."""
    if not broken.report.wrong_reads:
        return notice(NO_WRONG_READS)
    body = "".join(_reads_row(list(reads), broken) for _key, reads in groupby(broken.report.wrong_reads, _same_row))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Step", "Reader", "Block", "Looked for", "Found"))
    caption = "Reads that found something else than they looked for"
    return (
        f'<div class="pv-table pv-tall" role="region" tabindex="0" aria-label="{caption}"><table data-wrong-reads>'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _same_row(read: WrongRead) -> tuple[int, str, int]:
    return read.step, read.seq_id, read.block_id


def _reads_row(reads: Sequence[WrongRead], broken: Broken) -> str:
    display, first = broken.model.weights.tokenizer.display, reads[0]
    wanted = "".join(chip(display(read.wanted_token_id)) for read in reads)
    found = "".join(
        '<span class="pv-piece empty">nothing</span>' if read.found is None
        else chip(display(read.found.token_id), "differs")
        for read in reads
    )  # fmt: skip
    positions = span(first.position, len(reads), "token")
    return (
        f'<tr><th scope="row">{first.step}</th><td>{escaped(first.seq_id)}</td><td>{first.block_id}</td>'
        f"<td>{positions}: {wanted}</td><td>{escaped(_sources(reads))}: {found}</td></tr>"
    )


def _sources(reads: Sequence[WrongRead]) -> str:
    """Whose tokens lie there: "B's tokens 0 to 3"; "never written" where none do. Neighbours are named together."""
    held = [read.found for read in reads if read.found is not None]
    runs = groupby(enumerate(held), lambda item: (item[1].seq_id, item[1].position - item[0]))
    named = [(seq_id, [token.position for _index, token in run]) for (seq_id, _start), run in runs]
    words = [f"{seq_id}'s {span(positions[0], len(positions), 'token')}" for seq_id, positions in named]
    return ", ".join([*words, *(["never written"] if len(held) < len(reads) else [])])
