"""What one check found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`found`: what there is, in a sentence. `fix`: what to do about it; empty when the machine is ready for this."""

    name: str
    found: str
    fix: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to fix."""
        return not self.fix
