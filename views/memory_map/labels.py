"""Owner letters and colours: the one place that decides how a sequence is told apart.

A sequence is shown by a short label **and** a colour, so colour is never the only sign. Labels are handed out
in order of arrival and never change while a trace grows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.trace.state import CacheState

PALETTE = ("#0072B2", "#E69F00", "#CC79A7", "#009E73", "#56B4E9", "#8C6D31", "#4B2E83", "#D55E00")
"""Owner hues, after Okabe and Ito, ordered so that neighbours differ in lightness too. The map mixes them with
the theme's ground and ink, so both themes keep their contrast."""

OWN_NAME_LIMIT = 3
"""A sequence id of at most this many characters is its own label ("A", "r1")."""


@dataclass(frozen=True, slots=True)
class OwnerLabel:
    """How one sequence is shown: `letter` in its cells, `colour` an index into PALETTE."""

    letter: str
    colour: int

    @property
    def hex(self) -> str:
        """The colour as `#RRGGBB`."""
        return PALETTE[self.colour]


@dataclass
class OwnerLabels:
    """Labels by sequence id, handed out on first sight.

    The first sequence of a request gets the next free letter, its forks the letter with a number: A, A1, A2.
    Short ids name themselves, so that sentences ("B takes free block 3") and cells agree.
    """

    _labels: dict[str, OwnerLabel] = field(default_factory=dict)
    _letters_of_requests: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def of(self, seq_id: str, request_id: str) -> OwnerLabel:
        """The label of a sequence of a request; the same answer every time."""
        known = self._labels.get(seq_id)
        if known is None:
            known = OwnerLabel(self._letter_for(seq_id, request_id), len(self._labels) % len(PALETTE))
            self._labels[seq_id] = known
            self._taken.add(known.letter)
        return known

    def _letter_for(self, seq_id: str, request_id: str) -> str:
        if _names_itself(seq_id) and seq_id not in self._taken:
            self._letters_of_requests.setdefault(request_id, seq_id)
            return seq_id
        base = self._letters_of_requests.get(request_id)
        if base is None:
            base = self._first_free(nth_letter(i) for i in range(len(self._labels) * 2 + 1))
            self._letters_of_requests[request_id] = base
            return base
        return self._first_free(f"{base}{i}" for i in range(1, len(self._labels) * 2 + 2))

    def _first_free(self, candidates: Iterable[str]) -> str:
        return next(c for c in candidates if c not in self._taken)


def labels_of(state: CacheState) -> OwnerLabels:
    """The labels of every sequence of a state: the same at every moment of a trace, since letters never move on."""
    labels = OwnerLabels()
    for sequence in state.sequences.values():
        labels.of(sequence.seq_id, sequence.request_id)
    return labels


def nth_letter(index: int) -> str:
    """0 -> A, 25 -> Z, 26 -> AA: spreadsheet columns."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _names_itself(seq_id: str) -> bool:
    return 0 < len(seq_id) <= OWN_NAME_LIMIT and all(unicodedata.category(c)[0] in "LN" for c in seq_id)
