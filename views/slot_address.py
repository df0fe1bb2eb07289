"""One token followed through its block table, written out: every number is a field of the engine's `SlotAddress`."""

from __future__ import annotations

from engine.usage import SlotAddress
from views.html_parts import escaped
from views.text_safe import visible_piece


def slot_address_lines(address: SlotAddress) -> str:
    """Which row, which place in the block, which block, which slot: an HTML list, one step a line."""
    a = address
    token = f'Token {a.position} of {a.seq_id} is <span class="pv-piece">{escaped(visible_piece(a.piece))}</span>'
    return (
        '<ol class="pv-lookup">'
        f"<li>{token}. Blocks have {a.block_size} slots.</li>"
        f'<li>Row: {a.position} // {a.block_size} = <b data-figure="logical_index">{a.logical_index}</b></li>'
        f'<li>Place in the block: {a.position} % {a.block_size} = <b data-figure="offset">{a.offset}</b></li>'
        f'<li>The table says: block_table[{a.logical_index}] = <b data-figure="block_id">{a.block_id}</b></li>'
        f'<li>Slot: {a.block_id} × {a.block_size} + {a.offset} = <b data-figure="slot">{a.slot}</b></li>'
        "</ol>"
    )
