"""Lesson: an equal beginning is stored once, and copied only where somebody must write into it."""

from __future__ import annotations

from views import lesson
from views.charts import in_words
from views.course import SHARING
from views.fork_points import fork_points_frame
from views.html_parts import notice
from views.kept import kept, kept_key
from views.lessons import sharing as this
from views.worded import st


def draw_shared_beginning() -> None:
    way = kept(this.KEY, this.WAY, this.WAY.options[0])
    st.pills("Way of sharing", this.WAY.options, key=kept_key(this.KEY, "way"), required=True)
    picture = this.shared_beginning(way)
    lesson.play(this.KEY, picture, name=this.STEP, default=picture.values[-1])


def draw_fork_points() -> None:
    text = kept(this.FORK, this.TEXT, this.DEFAULT_TEXT)
    other = kept(this.FORK, this.OTHER, this.DEFAULT_OTHER)
    block_size = kept(this.FORK, this.BLOCK_SIZE, 4)
    words_side, other_side, size_side = st.columns([3, 2, 1])
    with words_side:
        st.text_input("Your words", max_chars=this.LONGEST_TEXT, key=kept_key(this.FORK, "text"))
    with other_side:
        st.text_input("The other ending", max_chars=this.LONGEST_TEXT, key=kept_key(this.FORK, "other"))
    with size_side:
        st.number_input("Block size", 1, 8, key=kept_key(this.FORK, "block"))
    if problem := this.why_not(text, other):
        st.html(notice(problem, "problem"))
    else:
        _draw_forks_of(text, other, block_size)


def _draw_forks_of(text: str, other: str, block_size: int) -> None:
    points = this.fork_points(text, other, block_size)
    fork_at = lesson.play(this.FORK, points, name=this.AFTER, default=min(this.DEFAULT_AFTER, points.values[-1]))
    with st.expander("Every fork point in one table"):
        table = in_words(fork_points_frame(points.scenes))
        st.table(table.set_index(table.columns[0]))
    st.header("The same fork, slowly")
    lesson.beats("One frame for each thing that happens to memory. Use the arrow keys.", facts={})
    slow = this.slow_motion(text, other, block_size, fork_at)
    lesson.play(this.SLOW, slow, name=this.MOMENT, default=slow.values[0])


def draw_paper_figures() -> None:
    name = kept(this.PAPER, this.FIGURE, this.FIGURE.options[0])
    st.pills("Figure of the paper", this.FIGURE.options, key=kept_key(this.PAPER, "figure"), required=True)
    picture = this.paper_figure(name)
    lesson.play(this.PAPER, picture, name=this.FRAME, default=picture.values[-1])


lesson.begin(
    SHARING,
    this.KEY,
    "Two answers to one prompt begin with the same words. Their tables can name the same blocks, "
    "so these words are stored once. The answers are A and A#1; in the pictures the second has the mark A1.",
)
draw_shared_beginning()

st.header("When they part: copy-on-write")
lesson.beats(
    "Two tables may name one block as long as both only **read** it. "
    "When one of them must write into it, it first makes a copy for itself and writes there. "
    "The other keeps the old block and notices nothing.",
    "That is all there is to **copy-on-write**: share until somebody writes, copy then, and only that one block.",
    "Type your own words. **Drag the slider** to fork them after each word in turn.",
    facts={},
)
draw_fork_points()

st.header("Two figures of the paper")
draw_paper_figures()

lesson.end(
    SHARING,
    notice=(
        "Sharing copies nothing. Only a write into a shared block does, and it copies one block, never the text.",
        "The last holder of a block writes in place. With two answers, one copies and the other does not.",
        "The paper forks and copies on write. vLLM today finds full blocks by content and computes the rest again.",
        "Sharing saves memory only where the beginnings are equal, token for token.",
    ),
    paper="Section 4.4, Figs. 8 and 9: parallel sampling, beam search, shared prefixes",
)
