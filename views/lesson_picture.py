"""A lesson's picture: a scene as frames for the memory map, each with its label, sentences and figures."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from course.messages import Facts, Text, fill
from course.scene import Scene
from engine.baselines.fragmentation import longest_free_extent, waste
from engine.trace.state import CacheState
from engine.trace.usage import usage_of
from views.figures import Figure, figure_rows
from views.memory_map import frames
from views.memory_map.frames import Payload, frames_payload, say_instead, states_payload
from views.memory_map.narration import headline, sentences

CountMore = Callable[[CacheState], Mapping[str, Any]]


@dataclass(frozen=True)
class FrameTexts:
    """How a lesson words its frames. All are texts over `Picture.facts`, marked for translation.

    label: the value of the dragged control ("4 tokens used"). figures: shown with the picture. say: sentences
    for a frame; none: what its events say themselves. captions: short paragraphs below the picture. more: further
    counts of a state, by name. focus: the sequence that a state is best seen with.
    """

    label: Text
    figures: tuple[Figure, ...]
    say: tuple[Text, ...] = ()
    captions: tuple[Text, ...] = ()
    more: CountMore = lambda _state: {}
    focus: Callable[[CacheState], str | None] = lambda _state: None


class Playable(Protocol):
    """Frames to play. `values[i]` is the control's value in frame i, in rising order."""

    @property
    def payload(self) -> Payload:
        """The frames as the memory map takes them."""
        ...

    @property
    def values(self) -> tuple[int, ...]:
        """The control's value in each frame."""
        ...


def position_of(playable: Playable, value: int) -> int:
    """The frame of `value`: of the next lower value that has one, else the first."""
    return max(bisect_right(playable.values, value) - 1, 0)


def first_with_tokens(scene: Scene) -> int:
    """The first value in whose frame a token is stored: where a lesson opens that is not about one moment."""
    return next((value for value in scene.values if waste(scene.at(value)).token_states), scene.values[0])


@dataclass(frozen=True)
class Picture:
    """The frames to play and the scene they replay."""

    scene: Scene
    texts: FrameTexts
    payload: Payload

    @property
    def values(self) -> tuple[int, ...]:
        """The scene's values."""
        return self.scene.values

    def facts(self, value: int) -> Facts:
        """Everything counted in the frame of `value`, from the fold of its trace."""
        return facts_of(self.scene.at(value), value, self.texts.more)


def facts_of(state: CacheState, value: int, more: CountMore) -> Facts:
    """`value` of the control, `waste`; of pages `usage`, of an arena `longest_run`; and what `more` counts."""
    facts: dict[str, Any] = {"value": value, "waste": waste(state)}
    if state.blocks:
        facts["usage"] = usage_of(state)
    else:
        facts["longest_run"] = longest_free_extent(state)
    facts.update(more(state))
    return facts


def picture(scene: Scene, texts: FrameTexts, title: str) -> Picture:
    """Fold the scene's trace and word every frame."""
    facts_of_frames = [facts_of(scene.at(value), value, texts.more) for value in scene.values]
    labels = [fill(texts.label, facts) for facts in facts_of_frames]
    payload = _payload(scene, labels, title)
    for frame, facts, value in zip(payload["frames"], facts_of_frames, scene.values, strict=True):
        frame |= words_of_frame(texts.figures, texts.captions, facts)
        if texts.say:
            say_instead(frame, [fill(sentence, facts) for sentence in texts.say])
        if focus := texts.focus(scene.at(value)):
            frame["focus"] = focus
    return Picture(scene, texts, renamed(payload))


def words_of_frame(figures: Iterable[Figure], captions: Iterable[Text], facts: Facts) -> dict[str, Any]:
    """What stands around a frame: figures above the picture, captions below it."""
    return {
        "figures": [list(row) for row in figure_rows(figures, facts)],
        "captions": [fill(caption, facts) for caption in captions],
    }


def renamed(payload: Payload) -> Payload:
    """The payload under a name that counts its words too: with other words it is another story to the browser."""
    return payload | {"trace_id": frames.digest(payload["frames"])}


def _payload(scene: Scene, labels: list[str], title: str) -> Payload:
    """Where each value is a step of its own, frames carry only what changed; else each carries its whole state."""
    steps = [scene.frame_of[value] for value in scene.values]
    if steps == list(range(steps[0], steps[-1] + 1)):
        by_step = dict(zip(steps, labels, strict=True))
        return frames_payload(scene.trace, first=steps[0], last=steps[-1], label=by_step.__getitem__, title=title)
    return states_payload(
        (
            frames.LabelledState(label, scene.at(value), sentences(events), headline=headline(events))
            for label, value, step in zip(labels, scene.values, steps, strict=True)
            for events in (scene.trace.events_of(step),)
        ),
        title=title,
    )
