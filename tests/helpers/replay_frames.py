"""A reader of frames in Python, as the browser reads them: plain assignment of the values a frame carries."""

from __future__ import annotations

from typing import Any

from engine.trace.state import BlockState, CacheState, SlotContent
from views.browser.text_safe import visible_piece

Slot = tuple[str, int, int, str] | None


class FrameReader:
    """Applies frames in order; `picture()` is what a reader knows after them."""

    def __init__(self) -> None:
        self.tokens: list[list[Any]] = []
        self.seqs: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}

    def apply(self, frame: dict[str, Any]) -> None:
        self.tokens += frame.get("new_tokens", [])
        self.seqs += frame.get("new_seqs", [])
        if "layout" in frame:
            self._start_afresh(frame["layout"])
        for entry in frame.get("seqs", []):
            self._apply_seq(entry)
        for request in frame.get("requests", []):
            self.state["requests"][request["request_id"]] = request
        for key in ("blocks", "cpu_blocks"):
            for entry in frame.get(key, []):
                self._apply_block(self.state[key][entry["id"]], entry)
        for slot in frame.get("arena", []):
            self.state["arena"][slot[0]] = self._content(slot)
        for key in ("regions", "next_free"):
            self.state[key] = frame.get(key, self.state[key])

    def picture(self) -> dict[str, Any]:
        return self.state

    def _start_afresh(self, layout: dict[str, int]) -> None:
        def blank() -> dict[str, Any]:
            return {"owners": {}, "cached": False, "slots": [None] * layout["block_size"]}

        self.state = {
            "layout": layout,
            "blocks": [blank() for _ in range(layout["num_blocks"])],
            "cpu_blocks": [blank() for _ in range(layout["num_cpu_blocks"])],
            "arena": [None] * layout["num_slots"],
            "seqs": {},
            "requests": {},
            "regions": [],
            "next_free": [],
        }

    def _apply_seq(self, entry: dict[str, Any]) -> None:
        blank = {"tokens": [], "num_prompt": 0, "num_computed": 0, "table": [], "cpu_table": [], "finish": None}
        seqs = self.state["seqs"]
        known = dict(seqs.get(self._name(entry["seq"]), blank))
        if "add" in entry:
            source = seqs.get(self._name(entry["of"]), blank)["tokens"]
            known["tokens"] = source[: entry["keep"]] + [tuple(self.tokens[t]) for t in entry["add"]]
        known |= {key: entry[key] for key in blank if key in entry}
        seqs[self._name(entry["seq"])] = known

    def _apply_block(self, block: dict[str, Any], entry: dict[str, Any]) -> None:
        if "owners" in entry:
            block["owners"] = {self._name(seq): logical for seq, logical in entry["owners"]}
        block["cached"] = entry.get("cached", block["cached"])
        for slot in entry.get("slots", []):
            block["slots"][slot[0]] = self._content(slot)

    def _content(self, slot: list[int]) -> Slot:
        if len(slot) == 1:
            return None
        _, seq, position, token = slot
        return self._name(seq), position, self.tokens[token][0], self.tokens[token][1]

    def _name(self, seq: int) -> str:
        name = self.seqs[seq]["seq_id"]
        assert isinstance(name, str)
        return name


def picture_of(state: CacheState) -> dict[str, Any]:
    """The same picture read from the fold itself: what frames must lead to."""
    names = list(state.sequences)
    return {
        "layout": {
            "block_size": state.block_size,
            "num_blocks": len(state.blocks),
            "num_cpu_blocks": len(state.cpu_blocks),
            "num_slots": len(state.arena),
        },
        "blocks": [_block(block) for block in state.blocks],
        "cpu_blocks": [_block(block) for block in state.cpu_blocks],
        "arena": [_slot(content) for content in state.arena],
        "seqs": {
            s.seq_id: {
                "tokens": [(t, visible_piece(p)) for t, p in zip(s.token_ids, s.pieces, strict=True)],
                "num_prompt": s.num_prompt_tokens,
                "num_computed": s.num_computed_tokens,
                "table": s.block_table,
                "cpu_table": s.cpu_block_table,
                "finish": s.finish_reason,
            }
            for s in state.sequences.values()
        },
        "requests": {
            r.request_id: {
                "request_id": r.request_id,
                "status": r.status,
                "reason": r.reason,
                "seqs": [names.index(seq_id) for seq_id in r.seq_ids],
            }
            for r in state.requests.values()
        },
        "regions": [
            {
                "request_id": r.request_id,
                "seq": names.index(r.request_id),
                "start": r.start,
                "num_slots": r.num_slots,
                "num_needed": r.num_needed,
                "num_written": r.num_written,
            }
            for r in sorted(state.regions.values(), key=lambda r: r.start)
        ],
        "next_free": list(state.free_block_queue)[:8],
    }


def _block(block: BlockState) -> dict[str, Any]:
    return {
        "owners": dict(block.owners),
        "cached": block.block_hash is not None,
        "slots": [_slot(content) for content in block.slots],
    }


def _slot(content: SlotContent | None) -> Slot:
    return (
        None if content is None else (content.seq_id, content.position, content.token_id, visible_piece(content.piece))
    )
