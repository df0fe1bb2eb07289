"""Whitespace and hostile text, owner letters, narration, tables, and what the browser reports."""

from __future__ import annotations

import math

import pytest

from engine.trace.events import EVENT_TYPES
from engine.trace.trace import Trace
from tests.helpers.map_traces import busy, fox, gaps, two_answers
from views.browser.text_safe import visible_piece
from views.elements import tables
from views.memory_map.changes import changes
from views.memory_map.component import MapSelection, read_selection
from views.memory_map.frames import FrameStream, frames_payload
from views.memory_map.labels import PALETTE, OwnerLabels, nth_letter
from views.memory_map.narration import headline, sentences


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        (" fox", "·fox"),
        ("  ", "··"),
        ("\n\n", "↵↵"),
        ("\t", "⇥"),
        ("\r\n", "␍↵"),
        ("", "∅"),
        ("\u200d", "‹U+200D›"),
        ("\u202e", "‹U+202E›"),
        ("\x00", "‹U+0000›"),
        ("a\x07b", "a‹U+0007›b"),
        ("👩‍👧", "👩‍👧"),
        ("é", "é"),
        ("\u00a0", "‹U+00A0›"),
        ("<b>&amp;</b>", "<b>&amp;</b>"),
        ("$5 **b** :red[x]", "$5·**b**·:red[x]"),
    ],
)
def test_a_piece_is_shown_as_it_is_with_blanks_marked(piece: str, shown: str) -> None:
    assert visible_piece(piece) == shown


class TestOwnerLabels:
    def test_short_ids_are_their_own_labels_and_forks_are_numbered(self) -> None:
        labels = OwnerLabels()
        assert [labels.of(s, "A").letter for s in ("A", "A#1", "A#2", "A")] == ["A", "A1", "A2", "A"]

    def test_long_ids_get_unused_letters(self) -> None:
        labels = OwnerLabels()
        seen = [labels.of(s, s).letter for s in ("B", "request-one", "request-two", "request-three")]
        assert seen == ["B", "A", "C", "D"]

    def test_letters_never_repeat_even_against_hostile_ids(self) -> None:
        labels = OwnerLabels()
        ids = [f"sequence {i}" for i in range(60)] + ["A", "B1", "AA", "<b>", "", "A#1"]
        letters = [labels.of(s, s.split("#")[0]).letter for s in ids]
        assert len(set(letters)) == len(ids)

    def test_colours_repeat_after_the_palette(self) -> None:
        labels = OwnerLabels()
        colours = [labels.of(f"s{i}", f"s{i}").colour for i in range(len(PALETTE) + 1)]
        assert colours == [*range(len(PALETTE)), 0]

    @pytest.mark.parametrize(
        ("index", "letters"), [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA"), (702, "AAA")]
    )
    def test_letters_count_like_spreadsheet_columns(self, index: int, letters: str) -> None:
        assert nth_letter(index) == letters


class TestNarration:
    def test_the_main_event_comes_first_and_routine_last(self) -> None:
        said = sentences(two_answers().events_of(2))
        assert said[0] == "Step 2 ran 2 tokens."
        assert said[1].startswith("A is about to write into shared block 1")
        assert said[-1].startswith("A#1 chooses token 7")

    def test_every_event_is_described_once(self) -> None:
        trace = busy()
        for step in range(trace.num_steps + 1):
            assert sorted(sentences(trace.events_of(step))) == sorted(e.describe() for e in trace.events_of(step))

    def test_the_headline_is_the_main_event(self) -> None:
        """A copy before all else; a block with its reason; a lone write; else what ran."""
        assert headline(two_answers().events_of(2)).startswith("A is about to write into shared block 1, so it copies")
        trace = fox()
        assert [headline(trace.events_of(step)) for step in (1, 5, 7)] == [
            "A takes free block 6 as its block 0.",
            "A writes token 6 into slot 6.",
            "The last block of A was full, so A took block 8.",
        ]
        assert headline(two_answers().events_of(4)) == "The last block of A was full, so A took block 3."
        assert headline(busy().events_of(1)) == "A took 3 blocks for 9 tokens."
        assert headline(busy().events_of(3)) == "Step 3 ran 4 tokens."
        assert headline([]) == "Nothing changes."

    def test_a_step_without_events_is_described(self) -> None:
        assert sentences(Trace().events_of(0)) == ["Nothing changes."]


def test_every_event_that_moves_a_block_has_an_animation() -> None:
    """A new event type must be given a move, or be named here as one that moves nothing."""
    still = {"PoolCreated", "ArenaCreated", "BlockStored", "BlockRemoved", "AllBlocksCleared"}
    still |= {"ServerRestarted"}
    traces = [busy(), gaps(), two_answers()]
    seen = {type(e).__name__ for t in traces for e in t if changes([e])}
    shown = {n for n, cls in EVENT_TYPES.items() if cls.group == "memory"} - still
    assert shown - seen == {"BlocksShuffled"}
    assert not any(changes([e]) for t in traces for e in t if type(e).__name__ in still or e.group != "memory")


class TestTables:
    def test_the_block_table_of_the_worked_example(self) -> None:
        table = tables.block_table_frame(fox().at(7), "A")
        assert list(zip(table["logical block"], table["physical block"], strict=True)) == [(0, 6), (1, 1), (2, 8)]
        assert list(table["written"]) == [4, 4, 1] and list(table["empty"]) == [0, 0, 3]
        assert table["tokens"][0] == "The red fox crossed"
        assert list(table["first slot"]) == [24, 4, 32]

    def test_blocks_and_sequences_show_the_fold(self) -> None:
        state = two_answers().at(2)
        blocks = tables.blocks_frame(state)
        assert list(blocks["ref_cnt"][:4]) == [2, 1, 1, 0]
        assert blocks["holders"][0] == "A[0], A#1[0]"
        assert blocks["slots"][1] == "us and hid –"
        sequences = tables.sequences_frame(state)
        assert list(sequences["tokens known"]) == [8, 8] and list(sequences["KV written"]) == [7, 7]

    def test_reservations_show_the_waste(self) -> None:
        state = gaps().at(9)
        table = tables.regions_frame(state)
        assert list(table["request"]) == ["B", "D"]
        assert list(table["slots unused"]) == [0, 0]

    def test_an_empty_state_gives_empty_tables_with_columns(self) -> None:
        state = fox().at(0)
        assert tables.regions_frame(state).empty and "slots held" in tables.regions_frame(state)
        assert tables.block_table_frame(state, "A").empty


class TestReports:
    """What comes from the browser is input: checked, clamped, and ignored when it is about another trace."""

    payload = frames_payload(fox())
    here = payload["trace_id"]

    def test_before_any_report_the_requested_position_is_clamped(self) -> None:
        assert read_selection(self.payload, None, None, None) == MapSelection(8, 8)
        assert read_selection(self.payload, 99, None, None).position == 8
        assert read_selection(self.payload, -5, None, None).position == 0

    def test_a_report_overrides_the_requested_position(self) -> None:
        assert read_selection(self.payload, 2, {"index": 5.0, "trace_id": self.here}, None).position == 5
        assert read_selection(self.payload, 2, {"index": 5, "trace_id": "another"}, None).position == 2

    def test_a_click_is_read_field_by_field(self) -> None:
        click = {"kind": "slot", "block": 8, "slot": 33, "seq_id": "A", "logical": 2, "token": 9, "seq": 3}
        shown = read_selection(self.payload, 7, None, click | {"trace_id": self.here})
        assert shown == MapSelection(7, 7, "slot", 8, 33, "A", 2, 9, 3)

    @pytest.mark.parametrize("bad", [-1, 1.5, math.nan, math.inf, True, "8", None, [8], {}])
    def test_invalid_numbers_are_none(self, bad: object) -> None:
        click = {"kind": "block", "block": bad, "seq_id": bad, "seq": bad, "trace_id": self.here}
        shown = read_selection(self.payload, 7, {"index": bad, "trace_id": self.here}, click)
        assert (shown.position, shown.block_id, shown.seq) == (7, None, 0)
        assert shown.seq_id == (bad if isinstance(bad, str) else None)

    def test_in_a_live_run_the_browsers_position_is_used(self) -> None:
        opening = FrameStream(fox(), "run").initial_payload()
        assert opening["frames"] == [] and opening["is_open"]
        assert read_selection(opening, None, {"index": 41, "step": 39, "trace_id": "run"}, None) == MapSelection(41, 39)
        assert read_selection(opening, 7, {"index": 41, "step": 39, "trace_id": "old"}, None) == MapSelection(7, 7)
        assert read_selection(opening, None, None, None) == MapSelection(0, 0)

    @pytest.mark.parametrize("junk", ["x", 3, [], {"kind": "evil"}, {"kind": "block"}, {"kind": {}, "trace_id": here}])
    def test_an_invalid_selection_is_none(self, junk: object) -> None:
        assert read_selection(self.payload, 7, junk, junk) == MapSelection(7, 7)
