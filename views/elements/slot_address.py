"""One token followed through its block table, written out: every number is a field of the engine's `SlotAddress`."""

from __future__ import annotations

from engine.i18n import N_, _, counted
from engine.trace.usage import SlotAddress
from views.elements.token_chips import chip
from views.html_parts import escaped

_MARK = "\0"
"""Where the token goes, which is HTML of its own, in a sentence that is not."""
STEPS = {
    N_("Row: {at.position} // {at.block_size} ="): "logical_index",
    N_("Offset in the block: {at.position} % {at.block_size} ="): "offset",
    N_("Block table: block_table[{at.logical_index}] ="): "block_id",
    N_("Slot: {at.block_id} × {at.block_size} + {at.offset} ="): "slot",
}


def slot_address_lines(address: SlotAddress) -> str:
    """Which row, which place in the block, which block, which slot: an HTML list, one step a line."""
    before, after = escaped(
        counted(
            "Token {at.position} of {at.seq_id} is {piece}. Blocks have {n} slot.",
            "Token {at.position} of {at.seq_id} is {piece}. Blocks have {n} slots.",
            address.block_size,
            at=address,
            piece=_MARK,
        )
    ).split(_MARK)
    steps = (
        f'{escaped(_(words).format(at=address))} <b data-figure="{STEPS[words]}">{getattr(address, STEPS[words])}</b>'
        for words in STEPS
    )
    lines = "".join(f"<li>{line}</li>" for line in (f"{before}{chip(address.piece)}{after}", *steps))
    return f'<ol class="pv-lookup">{lines}</ol>'
