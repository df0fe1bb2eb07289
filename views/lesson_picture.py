"""A lesson's picture: a scene as frames for the memory map, each with its label, sentences and figures."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engine.scenes.scene import Scene
from engine.state import CacheState
from engine.usage import usage_of
from engine.waste import longest_free_run, waste
from views import frames
from views.frames import Payload, frames_payload, scenes_payload
from views.narration import sentences
from views.told import Facts, Figure, tell
from views.words import translated

CountMore = Callable[[CacheState], Mapping[str, Any]]


@dataclass(frozen=True)
class Telling:
    """How a lesson words its frames. All are templates over `Picture.facts`.

    label: the value of the dragged control ("{value:token} used"). figures: shown with the picture. say: sentences
    for a frame; none: what its events say themselves. beats: short paragraphs below the picture. more: further counts
    of a state, by name. focus: the sequence that a state is best seen with.
    """

    label: str
    figures: tuple[Figure, ...]
    say: tuple[str, ...] = ()
    beats: tuple[str, ...] = ()
    more: CountMore = lambda _state: {}
    focus: Callable[[CacheState], str | None] = lambda _state: None


class Playable(Protocol):
    """Frames to play. `values[i]` is the control's value in frame i, in rising order."""

    @property
    def payload(self) -> Payload: ...

    @property
    def values(self) -> tuple[int, ...]: ...


def position_of(playable: Playable, value: int) -> int:
    """The frame of `value`: of the next lower value that has one, else the first."""
    return max(bisect_right(playable.values, value) - 1, 0)


@dataclass(frozen=True)
class Picture:
    """The frames to play and the scene they replay."""

    scene: Scene
    telling: Telling
    payload: Payload

    @property
    def values(self) -> tuple[int, ...]:
        return self.scene.values

    def facts(self, value: int) -> Facts:
        """Everything counted in the frame of `value`, from the fold of its trace."""
        return facts_of(self.scene.at(value), value, self.telling.more)


def facts_of(state: CacheState, value: int, more: CountMore) -> Facts:
    """`value` of the control, `waste`; of pages `usage`, of an arena `longest_run`; and what `more` counts."""
    facts: dict[str, Any] = {"value": value, "waste": waste(state)}
    if state.blocks:
        facts["usage"] = usage_of(state)
    else:
        facts["longest_run"] = longest_free_run(state)
    facts.update(more(state))
    return facts


def picture(scene: Scene, telling: Telling, title: str) -> Picture:
    """Fold the scene's trace and word every frame."""
    told = [facts_of(scene.at(value), value, telling.more) for value in scene.values]
    labels = [tell(telling.label, facts) for facts in told]
    payload = _payload(scene, labels, translated(title))
    for frame, facts, value in zip(payload["frames"], told, scene.values, strict=True):
        frame |= words_of_frame(telling.figures, telling.beats, facts)
        if telling.say:
            frame["say"] = [tell(sentence, facts) for sentence in telling.say]
        if focus := telling.focus(scene.at(value)):
            frame["focus"] = focus
    return Picture(scene, telling, renamed(payload))


def words_of_frame(figures: Iterable[Figure], beats: Iterable[str], facts: Facts) -> dict[str, Any]:
    """What stands around a frame: figures above the picture, beats below it."""
    return {"figures": [figure.told(facts) for figure in figures], "beats": [tell(beat, facts) for beat in beats]}


def renamed(payload: Payload) -> Payload:
    """The payload under a name that counts its words too: with other words it is another story to the browser."""
    return payload | {"trace_id": frames.digest(payload["frames"])}


def _payload(scene: Scene, labels: list[str], title: str) -> Payload:
    """Where each value is a step of its own, frames carry only what changed; else each carries its whole state."""
    steps = [scene.frame_of[value] for value in scene.values]
    if steps == list(range(steps[0], steps[-1] + 1)):
        by_step = dict(zip(steps, labels, strict=True))
        return frames_payload(scene.trace, first=steps[0], last=steps[-1], label=by_step.__getitem__, title=title)
    return scenes_payload(
        (
            frames.Scene(label, scene.at(value), sentences(scene.trace.events_of(step)))
            for label, value, step in zip(labels, scene.values, steps, strict=True)
        ),
        title=title,
    )
