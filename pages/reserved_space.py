"""Lesson: a reservation keeps room for the longest reply, and most replies are shorter."""

from __future__ import annotations

from views import lesson
from views.course import RESERVED_SPACE
from views.kept import kept, kept_key
from views.lessons import reserved_space as this
from views.worded import st

lesson.begin(
    RESERVED_SPACE,
    this.KEY,
    "When a request starts, nobody knows how long its reply will be. "
    "So systems before paging set aside room for the longest one, in one run.",
)
lesson.examples(this.KEY, this.EXAMPLES)
slots_side, words_side = st.columns(2)
with slots_side:
    num_reserved = kept(this.KEY, this.RESERVATION, 16)
    st.number_input("Slots reserved", 1, this.LARGEST_RESERVATION, key=kept_key(this.KEY, "reserved"))
with words_side:
    words = kept(this.KEY, this.TEXT, "running text")
    st.selectbox("Words of the reply", list(this.TEXTS), key=kept_key(this.KEY, "words"))

picture = this.reserved_space(num_reserved, words)
lesson.play(this.KEY, picture, name=this.TOKENS, default=this.DEFAULT_TOKENS)
lesson.end(
    RESERVED_SPACE,
    notice=(
        "The empty part counts as taken. A full memory can be mostly empty.",
        "A larger limit wastes more on the same reply; a smaller one cuts long replies off.",
        "The waste is known only at the end, because the length is known only at the end.",
    ),
    paper="Section 3.1 and Fig. 3: internal fragmentation, and slots reserved for later",
)
