"""How every lesson page reads: title, idea, a question, controls, the picture, beats, what to notice, where next.

begin(PAGE, KEY, "One line.")                 title, idea, question
...controls, kept by views/kept.py...
value = play(KEY, picture, name="tokens", default=7)      beats that go with a frame are the picture's own
beats("What always holds ...", "Then {fit.num_tokens} ...", facts=facts)
end(PAGE, KEY, notice=("...",), paper="Section 3.1, Fig. 3")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from engine.said import said
from views import course
from views.course import CoursePage
from views.html_parts import escaped
from views.kept import draw_corrections, kept, set_kept, settle_address
from views.lesson_picture import Playable, position_of
from views.memory_map import Follows, memory_map
from views.predict import draw_question
from views.told import Facts, tell
from views.url_values import NumberRule
from views.worded import draw_list, st
from views.words import translated

PAPER = "Kwon et al. 2023, Efficient Memory Management for Large Language Model Serving with PagedAttention"
PAPER_ADDRESS = "https://arxiv.org/abs/2309.06180"
SCRIPTED = "The words of this scene are scripted. The memory is real: the engine's own allocator made every frame."
SLIDERS = {
    "after": said("After"), "done": said("Done"), "frame": said("Frame"), "moment": said("Moment"),
    "requests": said("Requests"), "running": said("Running"), "step": said("Step"), "tokens": said("Tokens"),
}  # fmt: skip
"""What sentences call a lesson's slider, by its name in the address."""


def begin(page: CoursePage, lesson: str, idea: str) -> None:
    """Title, the idea in one line, and the question to predict first."""
    st.title(page.title)
    st.markdown(idea)
    draw_question(lesson)


def examples(lesson: str, prepared: Mapping[str, Mapping[str, int | str]]) -> None:
    """Buttons that set the controls to values worth seeing: name -> control values."""
    with st.container(horizontal=True, key=f"examples_{lesson}"):
        for number, (name, values) in enumerate(prepared.items()):
            st.button(name, key=f"example_{lesson}_{number}", on_click=partial(set_kept, lesson, **values))


def play(
    lesson: str,
    picture: Playable,
    *,
    name: str,
    default: int,
    height: int = 420,
    selected_seq: str | None = None,
    followed: Callable[[int], tuple[str, int] | None] | None = None,
    on_select: Callable[[], None] | None = None,
) -> int:
    """`scrub`, and a line that says what is scripted in this picture."""
    value = scrub(
        lesson, picture, name=name, default=default, height=height, selected_seq=selected_seq, followed=followed,
        on_select=on_select,
    )  # fmt: skip
    st.html(f'<p class="pv-scripted">{escaped(translated(SCRIPTED))}</p>')
    return value


def scrub(
    lesson: str,
    picture: Playable,
    *,
    name: str,
    default: int,
    height: int = 420,
    selected_seq: str | None = None,
    followed: Callable[[int], tuple[str, int] | None] | None = None,
    on_select: Callable[[], None] | None = None,
) -> int:
    """The map, with its slider as the page's control. Returns the value it stands at, kept as `?name=`.

    selected_seq: the sequence whose words it shows. followed: which token of which sequence the page speaks of, by
    the slider's value. on_select: a callback for what is clicked.
    """
    rule = NumberRule(name, SLIDERS.get(name, name.capitalize()), picture.values[0], picture.values[-1], default)
    position = position_of(picture, kept(lesson, rule, default))
    draw_corrections(lesson)
    memory_map(
        picture.payload,
        key=map_key(lesson),
        position=position,
        height=height,
        selected_seq=selected_seq,
        followed=followed(picture.values[position]) if followed else None,
        on_select=on_select,
        on_move=partial(_moved, lesson, picture, name),
    )
    return picture.values[position]


def play_beside(key: str, picture: Playable, leader: Playable, value: int, *, height: int) -> None:
    """A second map without a slider of its own: it stands where the leader's slider stands, also during a drag."""
    memory_map(
        picture.payload,
        key=key,
        position=position_of(picture, value),
        controls=False,
        height=height,
        follows=Follows(leader.payload["trace_id"], tuple(position_of(picture, v) for v in leader.values)),
    )


def map_key(lesson: str) -> str:
    """The session key of a lesson's map; `.st-key-...` in the browser."""
    return f"map_{lesson}"


def beats(*templates: str, facts: Facts) -> None:
    """Short paragraphs of the page; every number comes from `facts`. Those about a frame are the picture's."""
    st.html(f'<div class="pv-beats">{"".join(f"<p>{_told(template, facts)}</p>" for template in templates)}</div>')


def end(page: CoursePage, *, notice: Sequence[str], paper: str) -> None:
    """What to notice, the section of the paper, and the pages before and after."""
    st.header("What to notice")
    draw_list(notice)
    source = {"section": translated(paper), "paper": PAPER, "address": PAPER_ADDRESS}
    st.markdown(tell("**In the paper:** {section}. [{paper}]({address})", source))
    left, right = st.columns(2)
    with left:
        course.draw_previous(page)
    with right:
        course.draw_next(page)
    settle_address()


def _moved(lesson: str, picture: Playable, name: str) -> None:
    """The reader let go of the slider. A report about frames that are gone says nothing about these."""
    reported = st.session_state[map_key(lesson)].position
    if not isinstance(reported, Mapping) or reported.get("trace_id") != picture.payload["trace_id"]:
        return
    index = reported.get("index")
    if isinstance(index, int | float) and 0 <= index < len(picture.values):
        set_kept(lesson, **{name: picture.values[int(index)]})


def _told(template: str, facts: Facts) -> str:
    """Words in **stars** are strong."""
    parts = escaped(tell(template, facts)).split("**")
    return "".join(f"<strong>{part}</strong>" if number % 2 else part for number, part in enumerate(parts))
