"""Experiment: move every block of a running engine, with its tables and without them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from course.shuffle.lesson import LESSON
from engine.i18n import _
from views import lesson_page
from views.html_parts import notice
from views.lab import shuffle as this
from views.lab.background import result_of
from views.lab.controls import choose_model, type_number, type_text
from views.models.backend_banner import backend_banner
from views.models.loading import wait_for_model
from views.predict import OF_EXPERIMENT
from views.url_state import get_url_value, set_url_values, url_value_key


def draw_controls() -> tuple[str, str, list[int]]:
    prompt = type_text(this.KEY, this.PROMPT, this.DEFAULT_PROMPT)
    rules = (this.BLOCK_SIZE, this.NUM_BLOCKS, this.MAX_TOKENS, this.AFTER, this.SEED)
    with lesson_page.knobs(this.KEY):
        numbers = [
            type_number(this.KEY, rule, on_change=go_to_the_move if rule is this.AFTER else None) for rule in rules
        ]
    return prompt, choose_model(this.KEY), numbers


def draw_buttons() -> this.Move:
    """What moves; the two buttons of the experiment, and one to put everything back."""
    move = this.MOVES[get_url_value(this.KEY, this.MOVE, str(this.NOTHING))]
    with st.container(horizontal=True, key="moves"):
        for name, choice in (
            (_("Move blocks and tables"), this.WITH_TABLES),
            (_("Move memory only"), this.MEMORY_ONLY),
            (_("Put everything back"), this.NOTHING),
        ):
            st.button(name, key=f"move_{choice}", on_click=partial(choose, choice), disabled=choice == move)
    return move


def choose(move: str) -> None:
    """Show the run with this move, at the moment of the move."""
    set_url_values(this.KEY, move=move)
    go_to_the_move()


def go_to_the_move() -> None:
    """The moment after the step after which everything moves."""
    set_url_values(this.KEY, moment=st.session_state[url_value_key(this.KEY, this.AFTER.key)] + 1)


parts = lesson_page.begin(
    LESSON,
    _(
        "What happens if every block moves to another place in memory? Only the block tables say "
        "where keys and values are. Move the blocks and see whether the reply changes."
    ),
    OF_EXPERIMENT,
)
with parts.controls:
    move = draw_buttons()
    replies = st.container()
    prompt, chosen, (block_size, num_blocks, max_tokens, after, seed) = draw_controls()
    model = wait_for_model(chosen)
    inputs = this.ShuffleInputs(model.weights.name, prompt, block_size, num_blocks, max_tokens, after, seed)
    shuffled = result_of(this.KEY, inputs, lambda: this.shuffle(model, inputs))
if shuffled:
    frames = shuffled.frames[move]
    with replies:
        if problem := shuffled.why_too_late():
            st.html(notice(problem))
        st.html(this.replies(shuffled, move))
    with parts.picture:
        value = lesson_page.play(this.KEY, frames, name=this.MOMENT, default=frames.moved)
    with parts.details:
        st.html(this.table_against_memory(frames.found[value]))
        st.html(backend_banner(shuffled.run(move).trace.info))
with parts.details:
    lesson_page.end(
        LESSON,
        notice=(
            _("If the block tables are updated, blocks can be anywhere: same logits, same reply."),
            _("If not, attention reads whatever is in the old place. There is no error; the reply is wrong."),
            _(
                "The token that was sampled before the move is still right. The first one sampled after it "
                "can be wrong."
            ),
            _(
                "This is why a block can be copied, swapped out or moved at any time, as long as its entry in "
                "the block table is updated."
            ),
        ),
        paper=_("Section 4.2: logical and physical blocks, and the table between them"),
    )
