"""The same moments as tables: what a picture shows, for readers, for export and for pandas."""

from __future__ import annotations

import pandas as pd

from engine.i18n import N_
from engine.trace.state import BlockState, CacheState, SlotContent
from engine.trace.usage import block_table_of
from views.browser.text_safe import visible_piece

_NO_TOKEN = "–"


def block_table_frame(state: CacheState, seq_id: str) -> pd.DataFrame:
    """One row an entry of the sequence's block table, in logical order. Raises KeyError for an unknown sequence."""
    rows = [
        {
            N_("logical block"): entry.logical_index,
            N_("physical block"): entry.block_id,
            N_("first slot"): entry.first_slot,
            N_("last slot"): entry.last_slot,
            N_("written"): entry.num_written,
            N_("empty"): entry.num_empty,
            N_("ref_cnt"): entry.ref_cnt,
            N_("tokens"): _joined(entry.pieces),
        }
        for entry in block_table_of(state, seq_id)
    ]
    columns = ["logical block", "physical block", "first slot", "last slot", "written", "empty", "ref_cnt", "tokens"]
    return pd.DataFrame(rows, columns=columns)


def blocks_frame(state: CacheState) -> pd.DataFrame:
    """One row a physical block: its state, who holds it, and what its slots hold, old content included."""
    rows = [
        {
            N_("block"): block.block_id,
            N_("state"): block.status,
            N_("ref_cnt"): block.ref_cnt,
            N_("holders"): _holders(block),
            N_("cached"): block.block_hash is not None,
            N_("slots"): " ".join(_content(content) for content in block.slots),
        }
        for block in state.blocks
    ]
    return pd.DataFrame(rows, columns=["block", "state", "ref_cnt", "holders", "cached", "slots"])


def sequences_frame(state: CacheState) -> pd.DataFrame:
    """One row a sequence, with its two cursors."""
    rows = [
        {
            N_("sequence"): sequence.seq_id,
            N_("request"): sequence.request_id,
            N_("status"): sequence.finish_reason or state.requests[sequence.request_id].status,
            N_("tokens known"): sequence.num_tokens,
            N_("KV written"): sequence.num_computed_tokens,
            N_("block table"): " ".join(map(str, sequence.block_table)),
            N_("CPU block table"): " ".join(map(str, sequence.cpu_block_table)),
        }
        for sequence in state.sequences.values()
    ]
    columns = ["sequence", "request", "status", "tokens known", "KV written", "block table", "CPU block table"]
    return pd.DataFrame(rows, columns=columns)


def regions_frame(state: CacheState) -> pd.DataFrame:
    """One row a contiguous reservation, in memory order."""
    rows = [
        {
            N_("request"): region.request_id,
            N_("first slot"): region.start,
            N_("slots held"): region.num_slots,
            N_("slots asked"): region.num_needed,
            N_("slots written"): region.num_written,
            N_("slots unused"): region.num_slots - region.num_written,
        }
        for region in sorted(state.regions.values(), key=lambda region: region.start)
    ]
    columns = ["request", "first slot", "slots held", "slots asked", "slots written", "slots unused"]
    return pd.DataFrame(rows, columns=columns)


def _holders(block: BlockState) -> str:
    return ", ".join(f"{seq_id}[{logical_index}]" for seq_id, logical_index in block.owners.items())


def _content(content: SlotContent | None) -> str:
    return _NO_TOKEN if content is None else visible_piece(content.piece)


def _joined(pieces: tuple[str, ...]) -> str:
    return " ".join(visible_piece(piece) for piece in pieces)
