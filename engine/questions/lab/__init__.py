"""Questions to predict before an experiment of the lab; answered by running a small one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from engine.questions.lab import equation, preemption, race, sabotage, shuffle, why_not_shared
from engine.questions.question import Draft

KINDS: dict[str, tuple[Callable[[Random], Draft], ...]] = {
    "equation": equation.KINDS,
    "shuffle": shuffle.KINDS,
    "sabotage": sabotage.KINDS,
    "race": race.KINDS,
    "why_not_shared": why_not_shared.KINDS,
    "preemption": preemption.KINDS,
}
