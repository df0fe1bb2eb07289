"""Predict, then reveal: a seeded question above the picture. It can be skipped; nothing waits for an answer."""

from __future__ import annotations

from engine.questions import Choice, Question, question
from views.html_parts import escaped
from views.kept import kept, kept_key, set_kept
from views.room.predictions import share_prediction
from views.url_values import NumberRule
from views.worded import st
from views.words import translated

LARGEST_SEED = 999_999
OF_EXPERIMENT = "question"
"""An experiment's own seed decides what it runs, so its question's has another name in the address."""


def draw_question(lesson: str, seed_name: str = "seed") -> Question:
    """The question of this lesson and `?seed=`, its choices, and why the chosen one is right or wrong."""
    seed = kept(lesson, NumberRule(seed_name, "Seed of the question", 0, LARGEST_SEED, 0), 0)
    asked = question(lesson, seed)
    with st.expander("Predict first, or fold this away", expanded=True, key=f"question_{lesson}"):
        st.html(_prompt(asked))
        choices, again = st.columns([4, 1], vertical_alignment="center")
        with choices:
            st.radio(
                "Your prediction",
                range(len(asked.choices)),
                index=None,
                format_func=lambda index: asked.choices[index].text,
                key=_answer_key(lesson, seed),
                persist_state="session",
                horizontal=True,
                label_visibility="collapsed",
            )
        with again:
            st.button("Another one", key=f"another_{lesson}", on_click=_ask_another, args=(lesson, seed, seed_name))
        st.html(_verdict(_chosen(lesson, asked)))
        share_prediction(lesson, asked, st.session_state.get(_answer_key(lesson, seed)))
    return asked


def _chosen(lesson: str, asked: Question) -> Choice | None:
    index = st.session_state.get(_answer_key(lesson, asked.seed))
    return None if index is None else asked.choices[index]


def _answer_key(lesson: str, seed: int) -> str:
    return kept_key(lesson, f"answer_{seed}")


def _ask_another(lesson: str, seed: int, seed_name: str) -> None:
    set_kept(lesson, **{seed_name: (seed + 1) % (LARGEST_SEED + 1)})
    st.session_state.pop(_answer_key(lesson, seed), None)


def _prompt(asked: Question) -> str:
    """One idea a line, the question itself last."""
    *given, ask = translated(asked.prompt).splitlines()
    lines = "".join(f"<span>{escaped(line)}</span> " for line in given)
    return f'<p class="pv-ask" data-seed="{asked.seed}">{lines}<strong>{escaped(ask)}</strong></p>'


def _verdict(choice: Choice | None) -> str:
    """An empty line until a choice is made: it is a live region, so that the verdict is read out."""
    words = ""
    if choice is not None:
        mark = translated("Right." if choice.is_right else "Not so.")
        words = f"<strong>{escaped(mark)}</strong> {escaped(translated(choice.why))}"
    return f'<p class="pv-verdict" role="status" data-verdict="{_kind(choice)}">{words}</p>'


def _kind(choice: Choice | None) -> str:
    return "none" if choice is None else "right" if choice.is_right else "wrong"
