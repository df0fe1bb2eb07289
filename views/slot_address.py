"""One token followed through its block table, written out: every number is a field of the engine's `SlotAddress`."""

from __future__ import annotations

from engine.usage import SlotAddress
from views.html_parts import escaped
from views.text_safe import visible_piece
from views.words import filled

_MARK = "\0"
"""Where the token goes, which is HTML of its own, in a sentence that is not."""
STEPS = {
    "Row: {at.position} // {at.block_size} =": "logical_index",
    "Place in the block: {at.position} % {at.block_size} =": "offset",
    "The table says: block_table[{at.logical_index}] =": "block_id",
    "Slot: {at.block_id} × {at.block_size} + {at.offset} =": "slot",
}


def slot_address_lines(address: SlotAddress) -> str:
    """Which row, which place in the block, which block, which slot: an HTML list, one step a line."""
    facts = {"at": address, "piece": _MARK}
    before, after = escaped(
        filled("Token {at.position} of {at.seq_id} is {piece}. Blocks have {at.block_size} slots.", facts)
    ).split(_MARK)
    piece = f'<span class="pv-piece">{escaped(visible_piece(address.piece))}</span>'
    steps = (
        f'{escaped(filled(words, facts))} <b data-figure="{STEPS[words]}">{getattr(address, STEPS[words])}</b>'
        for words in STEPS
    )
    lines = "".join(f"<li>{line}</li>" for line in (f"{before}{piece}{after}", *steps))
    return f'<ol class="pv-lookup">{lines}</ol>'
