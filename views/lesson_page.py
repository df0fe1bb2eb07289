"""How every lesson page reads: on one side title, idea, a question, controls and what to notice; beside it, in view
all the time, the picture; below both what goes deeper. On a phone the picture comes first, its controls under it.

parts = begin(LESSON, "One line.")            title, idea, question
with parts.controls:
    examples(LESSON.key, {...})
    with knobs(LESSON.key): ...               inputs side by side, kept by views/url_state.py
with parts.picture:
    value = play(LESSON.key, picture, name="tokens", default=7)      captions that go with a frame are the picture's own
    say_what_is_scripted()
with parts.details: ...                       tables and charts, folded
with parts.notes:
    end(LESSON, notice=("...",), paper="Section 3.1, Fig. 3")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from course.conversation import FIRST_LESSON
from course.lesson import CoursePage, Lesson
from course.messages import Facts, Text, fill
from course.pages import EXPERIMENTS, LESSONS, lesson_number
from engine.i18n import N_, _
from views import navigation
from views.html_parts import draw_list, escaped
from views.lesson_picture import Playable, position_of
from views.memory_map.component import ALL_PARTS, Follows, memory_map
from views.predict import draw_question
from views.side_by_side import Parts, side_by_side
from views.url_state import draw_corrections, flush_url, get_url_value, set_url_values
from views.url_values import NumberRule

PAPER = "Kwon et al. 2023, Efficient Memory Management for Large Language Model Serving with PagedAttention"
PAPER_ADDRESS = "https://arxiv.org/abs/2309.06180"
SCRIPTED = N_("The words of this scene are scripted. The memory is real: the engine's own allocator made every frame.")
SLIDERS = {name: label for lesson in (*LESSONS, *EXPERIMENTS) for name, label in lesson.sliders.items()}
"""What sentences call a slider, by its name in the address."""
THREE_REQUESTS = N_(
    "Three chat requests: one system prompt, and the questions of three users. Later lessons use them again."
)
SAME_THREE_REQUESTS = N_("The same three requests as in lesson {number}, {title}: one system prompt, three users.")


def begin(lesson: Lesson, idea: str, seed_name: str = "seed") -> Parts:
    """Title, the idea in one line, the question to predict first, and the places for all the rest.

    seed_name: what the question's seed is called in the address.
    """
    number = lesson_number(lesson)
    remark = _("Lesson {number} of {count}").format(number=number, count=len(LESSONS)) if number else ""
    parts = side_by_side(_(lesson.title), remark)
    with parts.controls:
        st.markdown(idea)
        draw_question(lesson, seed_name, expanded=False)
    return parts


def say_three_requests(lesson: Lesson) -> None:
    """That this lesson shows the requests of `course.conversation`, and where they came first."""
    first = next(each for each in LESSONS if each.url_path == FIRST_LESSON)
    facts = {"number": lesson_number(first), "title": _(first.title)}
    st.markdown(fill(THREE_REQUESTS if lesson is first else SAME_THREE_REQUESTS, facts))


def knobs(lesson: str) -> DeltaGenerator:
    """A place for inputs: as many side by side as there is room for."""
    return st.container(key=f"knobs_{lesson}")


def examples(lesson: str, prepared: Mapping[str, Mapping[str, int | str]]) -> None:
    """Buttons that set the controls to values worth seeing: name, marked for translation -> control values."""
    with st.container(horizontal=True, key=f"examples_{lesson}"):
        for number, (name, values) in enumerate(prepared.items()):
            st.button(_(name), key=f"example_{lesson}_{number}", on_click=partial(set_url_values, lesson, **values))


def say_what_is_scripted() -> None:
    """The words are ours, the memory is the engine's."""
    st.html(f'<p class="pv-scripted">{escaped(_(SCRIPTED))}</p>')


def play(
    lesson: str,
    picture: Playable,
    *,
    name: str,
    default: int,
    height: int | None = None,
    share: float = 1.0,
    parts: tuple[str, ...] = ALL_PARTS,
    selected_seq: str | None = None,
    followed: Callable[[int], tuple[str, int] | None] | None = None,
    on_select: Callable[[], None] | None = None,
) -> int:
    """The map, with its slider as the page's control. Returns the value it stands at, kept as `?name=`.

    selected_seq: the sequence whose words it shows. followed: which token of which sequence the page speaks of, by
    the slider's value. on_select: a callback for what is clicked. height, share, parts: as in `memory_map`.
    """
    rule = NumberRule(name, SLIDERS[name], picture.values[0], picture.values[-1], default)
    position = position_of(picture, get_url_value(lesson, rule, default))
    draw_corrections(lesson)
    memory_map(
        picture.payload,
        key=map_key(lesson),
        position=position,
        height=height,
        share=share,
        parts=parts,
        selected_seq=selected_seq,
        followed=followed(picture.values[position]) if followed else None,
        on_select=on_select,
        on_move=partial(_moved, lesson, picture, name),
    )
    return picture.values[position]


def play_beside(
    key: str,
    picture: Playable,
    leader: Playable,
    value: int,
    *,
    height: int | None = None,
    share: float = 1.0,
    parts: tuple[str, ...] = ALL_PARTS,
) -> None:
    """A second map without a slider of its own: it stands where the leader's slider stands, also during a drag."""
    memory_map(
        picture.payload,
        key=key,
        position=position_of(picture, value),
        controls=False,
        height=height,
        share=share,
        parts=parts,
        follows=Follows(leader.payload["trace_id"], tuple(position_of(picture, v) for v in leader.values)),
    )


def map_key(lesson: str) -> str:
    """The session key of a lesson's map; `.st-key-...` in the browser."""
    return f"map_{lesson}"


def captions(*texts: Text, facts: Facts) -> None:
    """Short paragraphs of the page; every number comes from `facts`. Those about a frame are the picture's."""
    st.html(f'<div class="pv-captions">{"".join(f"<p>{_paragraph(text, facts)}</p>" for text in texts)}</div>')


def end(page: CoursePage, *, notice: Sequence[str], paper: str) -> None:
    """What to notice, the section of the paper, and the pages before and after."""
    st.header(_("What to notice"))
    draw_list(notice)
    source = {"section": paper, "paper": PAPER, "address": PAPER_ADDRESS}
    st.markdown(_("**In the paper:** {section}. [{paper}]({address})").format(**source))
    left, right = st.columns(2)
    with left:
        navigation.draw_previous(page)
    with right:
        navigation.draw_next(page)
    flush_url()


def _moved(lesson: str, picture: Playable, name: str) -> None:
    """The reader let go of the slider. A report about frames that are gone says nothing about these."""
    reported = st.session_state[map_key(lesson)].position
    if not isinstance(reported, Mapping) or reported.get("trace_id") != picture.payload["trace_id"]:
        return
    index = reported.get("index")
    if isinstance(index, int | float) and 0 <= index < len(picture.values):
        set_url_values(lesson, **{name: picture.values[int(index)]})


def _paragraph(text: Text, facts: Facts) -> str:
    """Words in **stars** are strong."""
    parts = escaped(fill(text, facts)).split("**")
    return "".join(f"<strong>{part}</strong>" if number % 2 else part for number, part in enumerate(parts))
