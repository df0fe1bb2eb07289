"""Block tables as HTML tables: one a sequence, a row a logical block, the tokens in their slots."""

from __future__ import annotations

from engine.i18n import N_, _, counted
from engine.trace.state import CacheState, SequenceState
from engine.trace.usage import TableEntry, block_table_of
from views.elements.token_chips import chip
from views.html_parts import escaped, owner_badge, owner_style
from views.memory_map.labels import OwnerLabel, labels_of

HEADINGS = (N_("Logical block"), N_("Physical block"), N_("Slots"), N_("Filled"), N_("Held by"), N_("Tokens"))


def request_tables(state: CacheState, request_id: str) -> str:
    """The tables of every sequence of a request."""
    labels = labels_of(state)
    sequences = [state.sequences[seq_id] for seq_id in state.requests[request_id].seq_ids]
    return "".join(_table(state, sequence, labels.of(sequence.seq_id, request_id)) for sequence in sequences)


def _table(state: CacheState, sequence: SequenceState, label: OwnerLabel) -> str:
    caption = f'<caption><span aria-hidden="true">{owner_badge(label)}</span> {escaped(_caption(sequence))}</caption>'
    rows = "".join(_row(entry, label) for entry in block_table_of(state, sequence.seq_id))
    head = "".join(f'<th scope="col">{escaped(_(heading))}</th>' for heading in HEADINGS)
    body = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>" if rows else ""
    name = escaped(_("Block table of {s.seq_id}").format(s=sequence))
    return (
        f'<div class="pv-table" role="region" tabindex="0" aria-label="{name}">'
        f'<table data-block-table="{escaped(sequence.seq_id)}">{caption}{body}</table></div>'
    )


def _caption(sequence: SequenceState) -> str:
    """The two cursors, or why there is no table."""
    if sequence.finish_reason is not None:
        facts = {"s": sequence, "reason": sequence.finish_reason.replace("_", " ")}
        return _("{s.seq_id} has ended ({reason}) and gave its blocks back.").format(**facts)
    if not sequence.block_table:
        return counted(
            "{s.seq_id} holds no block now; {n} token known.",
            "{s.seq_id} holds no block now; {n} tokens known.",
            sequence.num_tokens,
            s=sequence,
        )
    return counted(
        "{s.seq_id}: {n} token known, {s.num_computed_tokens} written.",
        "{s.seq_id}: {n} tokens known, {s.num_computed_tokens} written.",
        sequence.num_tokens,
        s=sequence,
    )


def _row(entry: TableEntry, label: OwnerLabel) -> str:
    several = entry.last_slot > entry.first_slot
    slots = _("{e.first_slot} to {e.last_slot}").format(e=entry) if several else str(entry.first_slot)
    written = _("{e.num_written} of {size}").format(e=entry, size=entry.num_written + entry.num_empty)
    pieces = "".join(map(chip, entry.pieces))
    empty = '<span class="pv-piece empty" aria-hidden="true">&nbsp;</span>' * entry.num_empty
    cells = (str(entry.block_id), slots, written, str(entry.ref_cnt))
    return (
        f'<tr><th scope="row">{entry.logical_index}</th>'
        + "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
        + f'<td style="{owner_style(label)}">{pieces}{empty}</td></tr>'
    )
