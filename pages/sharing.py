"""Lesson: an equal beginning is stored once, and copied only where somebody must write into it."""

from __future__ import annotations

import streamlit as st

from course.sharing.lesson import LESSON
from engine.i18n import N_, _
from views import lesson_page
from views.elements.charts import in_words
from views.html_parts import notice
from views.lesson_picture import first_with_tokens
from views.lessons import sharing as this
from views.url_state import get_url_value, url_value_key
from views.url_values import ChoiceRule, NumberRule

BEGINNING, FORK_ANYWHERE, SLOWLY = N_("two answers"), N_("a fork after each word"), N_("one fork, event by event")
SHOW = ChoiceRule("show", N_("Figure"), (BEGINNING, FORK_ANYWHERE, SLOWLY, *this.FIGURE.options))


def figure_of_address() -> str:
    """The figure that the address names a value of."""
    if this.MOMENT in st.query_params:
        return SLOWLY
    if {this.AFTER, this.TEXT.key, this.OTHER.key, this.BLOCK_SIZE.key} & set(st.query_params):
        return FORK_ANYWHERE
    if {this.FRAME, this.FIGURE.key} & set(st.query_params):
        named = st.query_params.get(this.FIGURE.key, "")
        return named if named in this.FIGURE.options else this.FIGURE.options[0]
    return BEGINNING


def draw_shared_beginning() -> None:
    way = get_url_value(this.KEY, this.WAY, this.WAY.options[0])
    with parts.controls:
        st.selectbox(_("Way of sharing"), this.WAY.options, format_func=_, key=url_value_key(this.KEY, "way"))
        if way == this.THREE_REQUESTS:
            lesson_page.say_three_requests(LESSON)
    picture = this.shared_beginning(way)
    opening = first_with_tokens(picture.scene)
    lesson_page.play(this.KEY, picture, name=this.STEP, default=opening, parts=("tables",))
    lesson_page.say_what_is_scripted()


def draw_forks(show: str) -> None:
    text = get_url_value(this.FORK, this.TEXT, this.DEFAULT_TEXT)
    other = get_url_value(this.FORK, this.OTHER, this.DEFAULT_OTHER)
    block_size = get_url_value(this.FORK, this.BLOCK_SIZE, 4)
    with parts.controls:
        st.text_input(_("Your words"), key=url_value_key(this.FORK, "text"))
        with lesson_page.knobs(this.KEY):
            st.text_input(_("The other ending"), key=url_value_key(this.FORK, "other"))
            st.number_input(_("Block size"), 1, 8, key=url_value_key(this.FORK, "block"))
    if problem := this.why_not(text, other):
        st.html(notice(problem, "problem"))
        return
    points = this.fork_points(text, other, block_size)
    default = min(this.DEFAULT_AFTER, points.values[-1])
    if show == FORK_ANYWHERE:
        lesson_page.play(this.FORK, points, name=this.AFTER, default=default)
        lesson_page.say_what_is_scripted()
    else:
        rule = NumberRule(this.AFTER, lesson_page.SLIDERS[this.AFTER], points.values[0], points.values[-1], default)
        slow = this.slow_motion(text, other, block_size, get_url_value(this.FORK, rule, default))
        lesson_page.play(this.SLOW, slow, name=this.MOMENT, default=slow.values[0])
        lesson_page.say_what_is_scripted()
    with parts.details, st.expander(_("Every fork point in one table")):
        table = in_words(this.fork_points_frame(points.scenes))
        st.table(table.set_index(table.columns[0]))


def draw_paper_figure(name: str) -> None:
    picture = this.paper_figure(name)
    lesson_page.play(this.PAPER, picture, name=this.FRAME, default=first_with_tokens(picture.scene))
    lesson_page.say_what_is_scripted()


parts = lesson_page.begin(
    LESSON,
    _(
        "Two answers to one prompt: must the prompt be stored twice? No. Both block tables can point "
        "to the same blocks, so the common **prefix** is stored once. The answers are A and A#1, "
        "marked A1 in the pictures."
    ),
)
show = get_url_value(this.KEY, SHOW, figure_of_address())
with parts.controls:
    st.selectbox(_("Figure"), SHOW.options, format_func=_, key=url_value_key(this.KEY, SHOW.key))
with parts.picture:
    if show == BEGINNING:
        draw_shared_beginning()
    elif show in this.FIGURE.options:
        draw_paper_figure(show)
    else:
        draw_forks(show)

with parts.notes:
    lesson_page.captions(
        N_(
            "Two block tables can point to the same block as long as both requests only **read** it. "
            "Before a request writes into a shared block, it gets a private copy and writes there. The "
            "other keeps the old block, unchanged."
        ),
        N_(
            "This is **copy-on-write**: a block is shared until a request writes into it, and only that "
            "block is copied."
        ),
        facts={},
    )
    lesson_page.end(
        LESSON,
        notice=(
            _("Sharing copies nothing. Only a write into a shared block causes a copy, and only of that block."),
            _(
                "A request that is the only user of a block writes in place. So of two answers, one copies "
                "and the other does not."
            ),
            _(
                "The paper forks and copies on write. vLLM today finds full blocks in its **prefix cache** by "
                "their hash and computes the rest again."
            ),
            _("Only what is equal from the first token on, token for token, is shared."),
        ),
        paper=_("Section 4.4, Figs. 8 and 9: parallel sampling, beam search, shared prefixes"),
    )
