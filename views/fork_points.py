"""Every fork point of a text at once: where a copy is due and where it is not, read from the traces."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from engine.events import BlockCopied
from engine.scenes.scene import Scene
from views.words import translated

FORK_AFTER, COPIED_BLOCKS, COPIED_SLOTS, WHERE = "Fork after word", "Blocks copied", "Slots copied", "Where it falls"
INSIDE, AT_EDGE = "inside a block", "at an edge"


def copies_of(scene: Scene) -> list[BlockCopied]:
    """Every copy the engine made in the scene."""
    return [event for event in scene.trace if isinstance(event, BlockCopied)]


def fork_points_frame(scenes: Mapping[int, Scene]) -> pd.DataFrame:
    """One row a fork point."""
    return pd.DataFrame(
        {
            FORK_AFTER: fork_at,
            WHERE: translated(INSIDE if copies_of(scene) else AT_EDGE),
            COPIED_BLOCKS: len(copies_of(scene)),
            COPIED_SLOTS: sum(event.num_slots for event in copies_of(scene)),
        }
        for fork_at, scene in scenes.items()
    )
