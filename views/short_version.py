"""The course in seven lines. Each line's figures are counted from the scene of the lesson it sums up."""

from __future__ import annotations

from dataclasses import dataclass

from engine.said import Said, said
from engine.scenes.batch import batch
from engine.scenes.block_table import block_table
from engine.scenes.fragmentation import fragmentation
from engine.scenes.growth import growth
from engine.scenes.reservation import reservation, reservation_of_length
from engine.scenes.sharing import two_answers
from engine.scenes.what_is_cached import what_is_cached
from engine.scenes.words import FOX, GUIDE_REPLY, passage
from engine.usage import block_table_of, usage_of
from engine.waste import free_runs, longest_free_run, percent_fewer_held, waste
from views import course
from views.course import CoursePage


@dataclass(frozen=True, slots=True)
class ShortLine:
    """What a lesson says in a line or two, and its page."""

    page: CoursePage
    text: Said


def short_version() -> tuple[ShortLine, ...]:
    """In the order of the course."""
    return (_cache(), _reservation(), _gaps(), _growth(), _order(), _sharing(), _batch())


def _cache() -> ShortLine:
    scene = what_is_cached(FOX[:3], FOX[3:])
    before, after = (scene.at(value).sequences["A"] for value in scene.values[-2:])
    text = said(
        "A model that writes keeps the keys and values of every token so far: the KV cache. Each step adds one token's "
        "worth: {before.num_computed_tokens} tokens stored, then {after.num_computed_tokens}.",
        before=before, after=after,
    )  # fmt: skip
    return ShortLine(course.WHAT_IS_CACHED, text)


def _reservation() -> ShortLine:
    text = said(
        "Nobody knows how long a reply will be. Reserve for the longest, and the rest stands empty: "
        "{short.token_states} of {short.num_held} slots used leave {short.num_empty} ({short.percent_empty:.0f} %); "
        "{long.token_states} of {long.num_held:,} leave {long.num_empty:,}.",
        short=waste(reservation_of_length(16, 7).at(7)),
        long=waste(reservation(2048, passage(60)).at(60)),
    )
    return ShortLine(course.RESERVED_SPACE, text)


def _gaps() -> ShortLine:
    scene = fragmentation().contiguous
    before, refused = scene.at(scene.values[-2]), scene.at(scene.values[-1]).requests["F"]
    text = said(
        "A reservation must be one piece. Gaps of {gaps[0].num_slots}, {gaps[1].num_slots} and {gaps[2].num_slots} "
        "slots make {free} free, but the longest is {longest}. The next request is refused: {refused.reason}.",
        gaps=free_runs(before), free=waste(before).free, longest=longest_free_run(before), refused=refused,
    )  # fmt: skip
    return ShortLine(course.WASTE_BETWEEN, text)


def _growth() -> ShortLine:
    num_words = len(GUIDE_REPLY)
    text = said(
        "Give out small blocks instead, each when a token needs it. {eleven.num_tokens_written} tokens take "
        "{eleven.num_used_blocks} blocks of {eleven.block_size} and leave {eleven.num_empty_slots} slot empty. "
        "A reply of {reply.num_tokens_written} leaves {reserved.num_empty} of {reserved.num_held} reserved slots "
        "empty, or {reply.num_empty_slots} of {reply.num_held_slots} in blocks.",
        eleven=usage_of(growth(passage(11), 4).at(11)),
        reply=usage_of(growth(GUIDE_REPLY, 5).at(num_words)),
        reserved=waste(reservation(32, GUIDE_REPLY).at(num_words)),
    )
    return ShortLine(course.GROWTH, text)


def _order() -> ShortLine:
    scene = block_table()
    frame = scene.at(scene.values[-1])
    rows = ", ".join(f"{entry.logical_index} → {entry.block_id}" for entry in block_table_of(frame, "A"))
    text = said(
        "Blocks may lie anywhere. A block table keeps the order: {rows}, over {frame.num_blocks} blocks.",
        rows=rows, frame=frame,
    )  # fmt: skip
    return ShortLine(course.BLOCK_TABLE, text)


def _sharing() -> ShortLine:
    scene = two_answers()
    text = said(
        "Tables may name the same block, so an equal beginning is stored once. Two answers share "
        "{usage.num_shared_blocks} blocks: {usage.num_copies_avoided} copies avoided. Who must write into a shared "
        "block copies it first.",
        usage=usage_of(scene.at(scene.values[-1])),
    )
    return ShortLine(course.SHARING, text)


def _batch() -> ShortLine:
    both = batch()
    contiguous, paged = both.contiguous.at(5), both.paged.at(5)
    text = said(
        "Five requests of {paged.token_states} tokens hold {contiguous.num_held} slots as reservations and "
        "{paged.num_held} in blocks: {fewer:.0f} % fewer. Nothing is compressed, and attention gives the same result.",
        contiguous=waste(contiguous), paged=waste(paged), fewer=percent_fewer_held(paged, contiguous),
    )  # fmt: skip
    return ShortLine(course.BATCH, text)
