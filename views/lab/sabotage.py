"""Experiment "Sabotage": which fault, on which prompt; the replies, the wrong reads and the picture of the memory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from course.messages import Facts
from course.sabotage.faults import FAULTS, MAX_TOKENS, Fault
from course.sabotage.lesson import LESSON
from course.scene import Scene
from engine.config import EngineConfig
from engine.i18n import N_, _, counted
from engine.trace.event_base import ended, token_span
from engine.trace.usage import usage_of
from views.elements.token_chips import chip, reply_card, reply_cards
from views.figures import Figure
from views.html_parts import escaped, notice
from views.lab.controls import LONGEST_PROMPT
from views.lesson_picture import FrameTexts, Picture, picture
from views.server.model_registry import ReadyModel
from views.url_values import ChoiceRule, NumberRule, TextRule

if TYPE_CHECKING:
    from course.sabotage.experiment import FaultInjectionReport
    from engine.inspect.watched_memory import WrongRead

KEY, STEP = LESSON.key, "step"
FAULT_OF = {fault.key: fault for fault in FAULTS}
FAULT = ChoiceRule("deed", N_("Break this"), tuple(FAULT_OF))
PROMPT = TextRule("prompt", N_("Prompt"), LONGEST_PROMPT)
DEFAULT_PROMPT = "The capital of France is Paris, and the capital of Italy is"
BLOCK_SIZE = NumberRule("block_size", N_("Block size"), 1, 16, 4)
MOST_TOKENS = 96
"""Of the prompt: more would make the tables long and say nothing else."""
MOST_SEQUENCES = 3
"""Two samples and a second request: what a scene has at most."""

FIGURES = (
    Figure(N_("Fault injected after step"), "{report.inject_after}"),
    Figure(N_("Broken rule"), "{rule}"),
    Figure(N_("Fault detected after step"), "{detected}"),
    Figure(N_("Wrong reads"), "{num_wrong_reads}"),
)
FRAME_TEXTS = FrameTexts(
    label=N_("step {value}"),
    figures=(
        Figure(N_("Blocks used"), "{usage.num_used_blocks}"),
        Figure(N_("Blocks shared"), "{usage.num_shared_blocks}"),
        Figure(N_("Blocks free"), "{usage.num_free_blocks}"),
    ),
    more=lambda state: {"usage": usage_of(state)},
)
DETECTED = N_("**The engine's own check finds it** after step {detected}: {detail}")
NOT_DETECTED = N_("**No rule was broken** in this scene: with this prompt the fault changed nothing that is checked.")
STOPPED = N_("**The engine stopped.** {report.failure}")
LOG_UNAWARE = N_("**The event log does not contain the fault.** The picture replays the log, so it looks right.")
LOG_ENDS = N_(
    "From step {next_step} on, the log contradicts itself, so the picture ends at step "
    "{report.last_drawable_step}. The table of wrong reads continues."
)
NO_WRONG_READS = N_("Every read found the expected token.")
UNHARMED = N_("**No token changed.** The fault is there, but here it did not change which token is most likely.")


@dataclass(frozen=True)
class FaultInputs:
    """What decides the result."""

    model: str
    fault: str
    prompt: str
    block_size: int


@dataclass(frozen=True)
class FaultInjection:
    """The report, the fault, and the faulty engine's memory as far as its log can be replayed."""

    report: FaultInjectionReport
    fault: Fault
    picture: Picture
    model: ReadyModel

    @property
    def first_step_to_see(self) -> int:
        """Where the picture opens: when the fault was detected, or the last moment that can be drawn."""
        return min(self.report.detected_after_step or self.report.inject_after, self.picture.values[-1])

    def facts(self) -> Facts:
        """What the page's templates name."""
        report = self.report
        return {
            "report": report,
            "rule": report.rule or "none",
            "detected": report.detected_after_step if report.rule else "never",
            "detail": ended(report.detail),
            "num_wrong_reads": len(report.wrong_reads),
            "next_step": report.last_drawable_step + 1,
        }

    def verdict(self) -> tuple[str, ...]:
        """Templates over `facts`."""
        report = self.report
        sentences = [DETECTED if report.rule else NOT_DETECTED]
        sentences += [STOPPED] if report.failure else []
        sentences += [] if report.is_reply_wrong else [UNHARMED]
        return tuple(sentences)

    def about_the_log(self) -> tuple[str, ...]:
        """Templates over `facts`."""
        ends_early = self.report.last_drawable_step < self.report.trace.num_steps
        return LOG_UNAWARE, *([LOG_ENDS] if ends_early else [])


def run_fault_injection(model: ReadyModel, inputs: FaultInputs) -> FaultInjection:
    """The scenario of that fault, healthy and with the fault. Raises ValueError when the prompt does not suit it."""
    from course.sabotage.experiment import run_with_fault
    from engine.inspect.scratch import components_factory

    prompt = model.weights.tokenizer.encode(inputs.prompt)
    if not 1 <= len(prompt) <= MOST_TOKENS:
        raise ValueError(
            _("The prompt needs 1 to {most_tokens} tokens here; this one has {num_prompt}.").format(
                most_tokens=MOST_TOKENS, num_prompt=len(prompt)
            )
        )
    longest = len(prompt) + MAX_TOKENS
    config = EngineConfig(
        model=inputs.model,
        block_size=inputs.block_size,
        num_blocks=MOST_SEQUENCES * (longest // inputs.block_size + 1),
        max_model_len=longest,
        enable_prefix_caching=False,
    )
    fault = FAULT_OF[inputs.fault]
    report = run_with_fault(components_factory(model.weights), config, prompt, fault)
    steps = {step: step for step in range(report.last_drawable_step + 1)}
    drawn = picture(
        Scene(report.trace, steps, "steps"), FRAME_TEXTS, _("Memory of the faulty engine, as its log has it")
    )
    return FaultInjection(report, fault, drawn, model)


def replies(injection: FaultInjection) -> str:
    """Each sequence as it should be, and as it came."""
    display, drawn = injection.model.weights.tokenizer.display, []
    for pair in injection.report.replies:
        seq_id = pair.healthy.seq_id
        drawn.append(
            reply_card(
                _("{seq_id}, healthy").format(seq_id=seq_id), f"healthy-{seq_id}", pair.healthy, None, None, display
            )
        )
        drawn.append(
            reply_card(
                _("{seq_id}, with the fault").format(seq_id=seq_id),
                f"broken-{seq_id}",
                pair.faulty,
                pair.healthy,
                pair.first_difference,
                display,
            )
        )
    return reply_cards(drawn)


def reads_table(injection: FaultInjection) -> str:
    """Every wrong read once: by whom, of which block, looking for what, and what it found; in which steps it came."""
    if not injection.report.wrong_reads:
        return notice(_(NO_WRONG_READS))
    rows: dict[Hashable, list[list[WrongRead]]] = {}
    for _key, group in groupby(injection.report.wrong_reads, lambda read: (read.step, read.seq_id, read.block_id)):
        reads = list(group)
        rows.setdefault(tuple(replace(read, step=0) for read in reads), []).append(reads)
    body = "".join(_reads_row(repeated, injection) for repeated in rows.values())
    head = "".join(
        f'<th scope="col">{name}</th>' for name in (_("Step"), _("Reader"), _("Block"), _("Expected"), _("Found"))
    )
    caption = _("Reads that did not find the expected token")
    return (
        f'<div class="pv-table pv-tall" role="region" tabindex="0" aria-label="{caption}"><table data-wrong-reads>'
        f"<caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _reads_row(repeated: Sequence[Sequence[WrongRead]], injection: FaultInjection) -> str:
    """`repeated`: the same reads, once for each step in which they came."""
    display, reads = injection.model.weights.tokenizer.display, repeated[0]
    first, more = reads[0], len(repeated) - 1
    steps = (
        counted("{step}, and {n} step more", "{step}, and {n} steps more", more, step=first.step)
        if more
        else str(first.step)
    )
    wanted = "".join(chip(display(read.wanted_token_id)) for read in reads)
    found = "; ".join(
        f"{escaped(words)}{': ' if tokens else ''}{''.join(chip(display(token), 'differs') for token in tokens)}"
        for words, tokens in found_by(reads)
    )
    return (
        f'<tr><th scope="row">{steps}</th><td>{escaped(first.seq_id)}</td><td>{first.block_id}</td>'
        f"<td>{token_span(first.position, len(reads))}: {wanted}</td><td>{found}</td></tr>"
    )


def found_by(reads: Sequence[WrongRead]) -> list[tuple[str, list[int]]]:
    """What lies in the slots read, in their order: whose tokens, with their ids; slots never written have none."""
    contents = [(index, read.found) for index, read in enumerate(reads)]
    named: list[tuple[str, list[int]]] = []
    for owner, run in groupby(contents, lambda item: item[1] and (item[1].seq_id, item[1].position - item[0])):
        held = [content for _index, content in run]
        tokens = [content for content in held if content is not None]
        if owner is None:
            named.append((counted("{n} slot never written", "{n} slots never written", len(held)), []))
        else:
            words = _("{seq_id}'s {tokens}").format(seq_id=owner[0], tokens=token_span(tokens[0].position, len(tokens)))
            named.append((words, [token.token_id for token in tokens]))
    return named
