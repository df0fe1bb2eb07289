"""One moment of a source as frames of the memory map.

A source that knows places is drawn as it is. One that does not is drawn as what it tells: contents, a card a copy, in
the order of storing. The map then says nothing of places and holders (`places` in the payload).
"""

from __future__ import annotations

from engine.cache_view import RankView, StoredBlock
from engine.state import BlockState, CacheState, SlotContent
from views.frames import Payload, Scene, scenes_payload
from views.remote_words import Words

MOST_CARDS = 400
PLACELESS_TITLE = "Stored blocks (physical place unknown)"


def map_payload(state: CacheState, rank: int, label: str, say: list[str], words: Words) -> Payload:
    """Frames for `memory_map`, of one engine of the source."""
    if state.blocks or state.arena:
        return scenes_payload([Scene(label, state, say)], title="Memory")
    drawn = _contents(state.findable.of(rank), words)
    drawn.step = state.step
    return scenes_payload([Scene(label, drawn, say)], title=PLACELESS_TITLE) | {"places": "unknown"}


def num_cards_left_out(view: RankView) -> int:
    """Copies beyond what is drawn."""
    return max(view.num_copies - MOST_CARDS, 0)


def _contents(view: RankView, words: Words) -> CacheState:
    copies = [block for block in view.blocks.values() for _place in block.places][:MOST_CARDS]
    size = max((block.block_size for block in copies), default=0)
    blocks = [
        BlockState(number, _slots(block, size, words), block_hash=block.block_hash)
        for number, block in enumerate(copies)
    ]
    return CacheState(block_size=size, blocks=blocks)


def _slots(block: StoredBlock, size: int, words: Words) -> list[SlotContent | None]:
    """What the block holds, with no sequence named: whose it is is not known."""
    tokens: list[SlotContent | None] = [
        SlotContent("", offset, token_id, words.piece(token_id))
        for offset, token_id in enumerate(block.token_ids)
    ]
    return tokens + [None] * (size - len(tokens))
