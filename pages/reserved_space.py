"""Lesson: a reservation keeps room for the longest reply, and most replies are shorter."""

from __future__ import annotations

import streamlit as st

from course.reserved_space.lesson import LESSON
from course.reserved_space.scene import REPLIES
from engine.i18n import _
from views import lesson_page
from views.elements.charts import frame_table
from views.lessons import reserved_space as this
from views.url_state import get_url_value, url_value_key

parts = lesson_page.begin(
    LESSON,
    _(
        "When a request starts, nobody knows how long its reply will be: {short} tokens, or {long}? "
        "Systems before paging reserved room for the longest reply, in one **contiguous** region. "
        "What is wrong with that?"
    ).format(short=REPLIES[0], long=REPLIES[-1]),
)
with parts.controls:
    lesson_page.examples(this.KEY, this.EXAMPLES)
    with lesson_page.knobs(this.KEY):
        num_reserved = get_url_value(this.KEY, this.RESERVATION, 16)
        st.number_input(_("Slots reserved"), 1, this.LARGEST_RESERVATION, key=url_value_key(this.KEY, "reserved"))
        words = get_url_value(this.KEY, this.TEXT, "running text")
        st.selectbox(_("Text of the reply"), list(this.TEXTS), format_func=_, key=url_value_key(this.KEY, "words"))

with parts.picture:
    picture = this.reserved_space(num_reserved, words)
    lesson_page.play(this.KEY, picture, name=this.TOKENS, default=this.DEFAULT_TOKENS)
    lesson_page.say_what_is_scripted()
with parts.details:
    st.html(frame_table(this.replies_frame(), _("The same reservation for replies of three lengths")))

with parts.notes:
    lesson_page.end(
        LESSON,
        notice=(
            _(
                "No other request can use reserved slots, even while they are empty. So memory can be full "
                "and mostly empty."
            ),
            _(
                "A larger limit wastes more on the same reply; a smaller one cuts long replies short. In "
                "vLLM, `max_model_len` limits prompt and reply together."
            ),
            _("How much was wasted is known only at the end, when the length is known."),
        ),
        paper=_("Section 3.1 and Fig. 3: internal fragmentation, and slots reserved for future tokens"),
    )
