"""Lesson: free memory in pieces cannot serve a request that needs one piece; pages can."""

from __future__ import annotations

from engine.said import said
from engine.scenes.actions import Finish, format_actions
from views import lesson
from views.charts import draw_chart, line_chart
from views.course import WASTE_BETWEEN
from views.html_parts import notice
from views.kept import kept, kept_key, set_kept
from views.lessons import waste_between as this
from views.worded import st


def add() -> None:
    replay(this.with_request(both.actions, st.session_state[kept_key(this.KEY, "length")]), len(both.actions) + 1)


def finish() -> None:
    chosen = st.session_state.pop(kept_key(this.KEY, "finish"), None)
    if chosen is not None:
        replay(format_actions([*both.actions, Finish(chosen)]), len(both.actions) + 1)


def undo() -> None:
    replay(format_actions(both.actions[:-1]), len(both.actions) - 1)


def replay(text: str, value: int) -> None:
    set_kept(this.KEY, do=text, done=value)


TOO_MANY = said("At most {most} actions are replayed. Undo one, or start with empty memory.", most=this.MAX_ACTIONS)

lesson.begin(
    WASTE_BETWEEN,
    this.KEY,
    "A reservation must be one run of neighbouring slots. "
    "When requests end at different times, what they leave is free, but in pieces.",
)
lesson.examples(this.KEY, this.EXAMPLES)
text = kept(this.KEY, this.ActionsRule(), this.GAPS_TEXT)
allocator_side, size_side, length_side, add_side, undo_side = st.columns([3, 2, 2, 2, 2], vertical_alignment="bottom")
with allocator_side:
    allocator = kept(this.KEY, this.ALLOCATOR, "first_fit")
    st.selectbox(
        "Allocator", list(this.NAMES_OF_ALLOCATORS), key=kept_key(this.KEY, "allocator"),
        format_func=this.NAMES_OF_ALLOCATORS.__getitem__,
    )  # fmt: skip
with size_side:
    block_size = kept(this.KEY, this.PAGE_SIZE, this.BLOCK_SIZE)
    st.number_input("Block size", 1, this.LARGEST_BLOCK, key=kept_key(this.KEY, "block_size"))
both = this.both_layouts(text, allocator, block_size)
is_full = not this.has_room_for_more(both.actions)
with length_side:
    kept(this.KEY, this.LENGTH, 6)
    st.number_input("Tokens to add", 1, this.NUM_SLOTS, key=kept_key(this.KEY, "length"))
with add_side:
    st.button("Add request", key="add_request", on_click=add, disabled=is_full, width="stretch")
with undo_side:
    st.button("Undo", key="undo_action", on_click=undo, disabled=not both.actions, width="stretch")
holders = this.residents(both)
if holders and not is_full:
    st.pills("Finish a request", holders, key=kept_key(this.KEY, "finish"), on_change=finish)
if is_full:
    st.html(notice(TOO_MANY))

value = lesson.play(this.KEY, both.in_runs, name=this.DONE, default=len(both.actions), height=240)
st.header("The same arrivals on pages")
lesson.play_beside("map_pages", both.on_pages, both.in_runs, value, height=300)
table = this.over_time(both)
st.header("What is free, action by action")
draw_chart(
    line_chart(table, this.ACTION, (this.FREE, this.LONGEST, this.FREE_ON_PAGES), "Slots", steps=True),
    table, "What is free, action by action", key="free_over_time",
)  # fmt: skip
lesson.end(
    WASTE_BETWEEN,
    notice=(
        "The first two lines part when memory breaks into pieces. The gap between them is lost to long requests.",
        "First fit takes the first gap that is long enough, best fit the shortest. Neither can join two gaps.",
        "The buddy allocator joins gaps fast, and pays by rounding every request up to a power of two.",
        "Moving running requests together would help, and would copy their whole caches to do it.",
    ),
    paper="Section 3.1: external fragmentation, and why compaction is no way out",
)
