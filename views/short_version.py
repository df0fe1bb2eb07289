"""The course in seven lines. Each line's figures are counted from the scene of the lesson it sums up."""

from __future__ import annotations

from dataclasses import dataclass

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
    text: str


def short_version() -> tuple[ShortLine, ...]:
    """In the order of the course."""
    return (_cache(), _reservation(), _gaps(), _growth(), _order(), _sharing(), _batch())


def _cache() -> ShortLine:
    scene = what_is_cached(FOX[:3], FOX[3:])
    tokens = [scene.at(value).sequences["A"].num_computed_tokens for value in scene.values[-2:]]
    return ShortLine(
        course.WHAT_IS_CACHED,
        "A model that writes keeps the keys and values of every token so far: the KV cache. "
        f"Each step adds one token's worth: {tokens[0]} tokens stored, then {tokens[1]}.",
    )


def _reservation() -> ShortLine:
    short = waste(reservation_of_length(16, 7).at(7))
    long = waste(reservation(2048, passage(60)).at(60))
    return ShortLine(
        course.RESERVED_SPACE,
        "Nobody knows how long a reply will be. Reserve for the longest, and the rest stands empty: "
        f"{short.token_states} of {short.num_held} slots used leave {short.num_empty} ({short.percent_empty:.0f} %); "
        f"{long.token_states} of {long.num_held:,} leave {long.num_empty:,}.",
    )


def _gaps() -> ShortLine:
    scene = fragmentation().contiguous
    before, refused = scene.at(scene.values[-2]), scene.at(scene.values[-1]).requests["F"]
    gaps = [run.num_slots for run in free_runs(before)]
    return ShortLine(
        course.WASTE_BETWEEN,
        f"A reservation must be one piece. Gaps of {gaps[0]}, {gaps[1]} and {gaps[2]} slots make {waste(before).free} "
        f"free, but the longest is {longest_free_run(before)}. The next request is refused: {refused.reason}.",
    )


def _growth() -> ShortLine:
    eleven = usage_of(growth(passage(11), 4).at(11))
    reply = usage_of(growth(GUIDE_REPLY, 5).at(len(GUIDE_REPLY)))
    reserved = waste(reservation(32, GUIDE_REPLY).at(len(GUIDE_REPLY)))
    return ShortLine(
        course.GROWTH,
        "Give out small blocks instead, each when a token needs it. "
        f"{eleven.num_tokens_written} tokens take {eleven.num_used_blocks} blocks of {eleven.block_size} and leave "
        f"{eleven.num_empty_slots} slot empty. A reply of {reply.num_tokens_written} leaves {reserved.num_empty} of "
        f"{reserved.num_held} reserved slots empty, or {reply.num_empty_slots} of {reply.num_held_slots} in blocks.",
    )


def _order() -> ShortLine:
    scene = block_table()
    frame = scene.at(scene.values[-1])
    rows = ", ".join(f"{entry.logical_index} → {entry.block_id}" for entry in block_table_of(frame, "A"))
    return ShortLine(
        course.BLOCK_TABLE,
        f"Blocks may lie anywhere. A block table keeps the order: {rows}, over {frame.num_blocks} blocks.",
    )


def _sharing() -> ShortLine:
    scene = two_answers()
    usage = usage_of(scene.at(scene.values[-1]))
    return ShortLine(
        course.SHARING,
        "Tables may name the same block, so an equal beginning is stored once. Two answers share "
        f"{usage.num_shared_blocks} blocks: {usage.num_copies_avoided} copies avoided. "
        "Who must write into a shared block copies it first.",
    )


def _batch() -> ShortLine:
    both = batch()
    contiguous, paged = both.contiguous.at(5), both.paged.at(5)
    return ShortLine(
        course.BATCH,
        f"Five requests of {waste(paged).token_states} tokens hold {waste(contiguous).num_held} slots as reservations "
        f"and {waste(paged).num_held} in blocks: {percent_fewer_held(paged, contiguous):.0f} % fewer. "
        "Nothing is compressed, and attention gives the same result.",
    )
