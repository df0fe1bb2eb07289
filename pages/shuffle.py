"""Experiment: move every block of a running engine, with its tables and without them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from views import lesson
from views.backend_banner import backend_banner
from views.course import SHUFFLE
from views.experiments import shuffle as this
from views.experiments.asked import result_of
from views.experiments.controls import choose_model, type_number, type_text
from views.html_parts import notice
from views.kept import kept, kept_key, set_kept
from views.model_loading import wait_for_model
from views.predict import OF_EXPERIMENT, draw_question


def draw_controls() -> tuple[str, str, list[int]]:
    prompt_side, model_side = st.columns([3, 2], gap="medium")
    with prompt_side:
        prompt = type_text(this.KEY, this.PROMPT, this.DEFAULT_PROMPT)
    with model_side:
        model = choose_model(this.KEY)
    numbers = []
    rules = (this.BLOCK_SIZE, this.NUM_BLOCKS, this.MAX_TOKENS, this.AFTER, this.SEED)
    for column, rule in zip(st.columns(len(rules)), rules, strict=True):
        with column:
            numbers.append(type_number(this.KEY, rule, on_change=go_to_the_move if rule is this.AFTER else None))
    return prompt, model, numbers


def draw_buttons() -> this.Move:
    """What moves; the two buttons of the experiment, and one to put everything back."""
    move = this.MOVES[kept(this.KEY, this.MOVE, str(this.MEMORY_ONLY))]
    with st.container(horizontal=True, key="moves"):
        for name, choice in (
            ("Move blocks and tables", this.WITH_TABLES),
            ("Move memory only", this.MEMORY_ONLY),
            ("Put everything back", this.NOTHING),
        ):
            st.button(name, key=f"move_{choice}", on_click=partial(choose, choice), disabled=choice == move)
    return move


def choose(move: str) -> None:
    """Show the run with this move, at the moment of the move."""
    set_kept(this.KEY, move=move)
    go_to_the_move()


def go_to_the_move() -> None:
    """The moment after the step after which everything moves."""
    set_kept(this.KEY, moment=st.session_state[kept_key(this.KEY, this.AFTER.key)] + 1)


def draw_run(shuffled: this.Shuffled, move: this.Move) -> None:
    if problem := shuffled.why_too_late():
        st.html(notice(problem))
    st.html(this.replies(shuffled, move))
    frames = shuffled.frames[move]
    value = lesson.scrub(this.KEY, frames, name=this.MOMENT, default=frames.moved, height=300)
    st.html(this.table_against_memory(frames.found[value]))
    st.html(backend_banner(shuffled.run(move).trace.info))


st.title(SHUFFLE.title)
st.markdown(
    "A block table is the only thing that knows where a token's keys and values lie. "
    "So move everything, and see who notices."
)
draw_question(this.KEY, OF_EXPERIMENT)
prompt, chosen, (block_size, num_blocks, max_tokens, after, seed) = draw_controls()
model = wait_for_model(chosen)
inputs = this.Inputs(model.weights.name, prompt, block_size, num_blocks, max_tokens, after, seed)
move = draw_buttons()
if shuffled := result_of(this.KEY, inputs, lambda: this.shuffle(model, inputs)):
    draw_run(shuffled, move)
lesson.end(
    SHUFFLE,
    notice=(
        "With its tables, every block may lie anywhere: same scores, same words.",
        "Without them, attention reads whatever lies in the old place. It does not fail. It answers nonsense.",
        "The token that was chosen before the move is still right. The first one chosen after it can be wrong.",
        "This is why a block may be copied, swapped out or moved at any time, as long as one number follows.",
    ),
    paper="Section 4.2: logical and physical blocks, and the table between them",
)
