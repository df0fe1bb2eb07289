"""State -> frame: what changed in the picture since the frame before.

A frame carries new absolute values, never arithmetic, so applying one is assignment (`js/model.js` does it in
the browser, `tests/helpers/replay_frames.py` in the tests). Fields, each there only when it changed:

    layout      {block_size, num_blocks, num_cpu_blocks, num_slots}: memory and sequences start afresh
    new_tokens  [[token_id, text]]     appended to the token dictionary; slots and sequences name tokens by index
    new_seqs    [{seq_id, request_id, letter, colour}]   appended to the sequence dictionary, same use
    blocks, cpu_blocks  [{id, owners: [[seq, logical]], cached, slots: [[offset, seq, position, token] | [offset]]}]
    arena       [[slot, seq, position, token] | [slot]]
    regions     [{request_id, seq, start, num_slots, num_needed, num_written}]        all of them
    seqs        [{seq, of, keep, add, num_prompt, num_computed, table, cpu_table, finish}]
                tokens: the first `keep` of sequence `of`, then the tokens `add`
    requests    [{request_id, status, reason, seqs}]
    next_free   [block ids]            the head of the free queue
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.state import CacheState
from views.encode_memory import MemoryEncoder
from views.encode_sequences import SequenceEncoder
from views.frame_dictionaries import FrameDictionaries
from views.touched import EVERYTHING, Touched

Frame = dict[str, Any]


class FrameEncoder:
    """Remembers the last state and writes the difference to the next. Frames must be applied in order."""

    def __init__(self) -> None:
        self._names = FrameDictionaries()
        self._memory = MemoryEncoder(self._names)
        self._sequences = SequenceEncoder(self._names)
        self._layout: dict[str, int] = {}

    def start_afresh(self) -> None:
        """The next frame is complete: it follows from no other."""
        self._layout = {}
        self._memory.forget()
        self._sequences.forget()

    def encode(
        self, state: CacheState, touched: Touched = EVERYTHING, parents: Mapping[str, str] | None = None
    ) -> Frame:
        """The difference from the state encoded before. `parents[fork] = parent` saves sending tokens twice."""
        frame: Frame = {}
        layout = _layout_of(state)
        if layout != self._layout:
            self.start_afresh()
            frame["layout"] = self._layout = layout
            touched = EVERYTHING
        frame |= self._sequences.encode(state, touched, parents or {})
        frame |= self._memory.encode(state, touched)
        return frame | self._names.take_new()


def _layout_of(state: CacheState) -> dict[str, int]:
    return {
        "block_size": state.block_size,
        "num_blocks": len(state.blocks),
        "num_cpu_blocks": len(state.cpu_blocks),
        "num_slots": len(state.arena),
    }
