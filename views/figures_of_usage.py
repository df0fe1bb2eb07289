"""The counts of one moment as figures with names."""

from __future__ import annotations

from engine.usage import Usage
from views.html_parts import figures


def usage_figures(step: int, usage: Usage) -> str:
    """Step, blocks by state, and slots written of those held."""
    return figures(
        [
            ("step", "Step", str(step)),
            ("used", "Blocks used", str(usage.num_used_blocks)),
            ("cached", "Blocks cached", str(usage.num_cached_blocks)),
            ("free", "Blocks free", str(usage.num_free_blocks)),
            ("written", "Slots written", f"{usage.num_written_slots} of {usage.num_held_slots}"),
            ("copies_avoided", "Copies avoided", str(usage.num_copies_avoided)),
        ]
    )
