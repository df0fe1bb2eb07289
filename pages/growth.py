"""Lesson: a request takes a block when a token needs it, so only its last block can have empty slots."""

from __future__ import annotations

import streamlit as st

from course.growth.lesson import LESSON
from engine.i18n import _
from views import lesson_page
from views.elements.charts import draw_chart, frame_table, line_chart
from views.elements.tables import block_table_frame
from views.html_parts import notice
from views.lessons import growth as this
from views.url_state import get_url_value, url_value_key

parts = lesson_page.begin(
    LESSON,
    _(
        "What if nothing is reserved? Memory is divided into small **blocks** of equal size, also "
        "called *pages*. A request gets a block when a token needs a slot, as a car park gives each "
        "arriving car a numbered bay and does not reserve a whole row."
    ),
)
with parts.controls:
    lesson_page.examples(this.KEY, this.EXAMPLES)
    with lesson_page.knobs(this.KEY):
        block_size = get_url_value(this.KEY, this.BLOCK_SIZE, 4)
        st.number_input(_("Block size"), 1, this.LARGEST_BLOCK, key=url_value_key(this.KEY, "block_size"))
        num_prompt_words = get_url_value(this.KEY, this.PROMPT, 1)
        st.number_input(_("Prompt length, in words"), 1, this.LARGEST_PROMPT, key=url_value_key(this.KEY, "prompt"))
        choice = get_url_value(this.KEY, this.TEXT, this.PASSAGE)
        st.selectbox(_("Words"), list(this.TEXT.options), format_func=_, key=url_value_key(this.KEY, "words"))
        places = get_url_value(this.KEY, this.PLACES, this.IN_ORDER)
        st.selectbox(_("Free blocks"), list(this.PLACES.options), format_func=_, key=url_value_key(this.KEY, "places"))
    if choice == this.CHAT:
        lesson_page.say_three_requests(LESSON)
    own = get_url_value(this.KEY, this.OWN_TEXT, this.DEFAULT_OWN)
    if choice == this.OWN:
        st.text_input(_("Your text, one token per word"), key=url_value_key(this.KEY, "text"))
        if not this.own_words(own):
            st.html(notice(_("There are no words yet, so the prepared text is shown.")))

with parts.picture:
    picture = this.pages(this.words_to_store(choice, own), block_size, num_prompt_words, places)
    value = lesson_page.play(
        this.KEY, picture, name=this.TOKENS, default=this.DEFAULT_TOKENS, parts=this.parts_shown(places)
    )
    lesson_page.say_what_is_scripted()

with parts.details:
    with st.expander(_("One contiguous region compared with blocks")):
        in_layouts, in_blocks = st.columns([2, 3])
        with in_layouts:
            st.html(frame_table(this.comparison(picture, value), _("One contiguous region compared with blocks")))
        with in_blocks:
            table = block_table_frame(picture.scene.at(value), "A")
            shown = table[["logical block", "physical block", "written", "empty", "tokens"]]
            st.html(frame_table(shown, _("The words in each block")))
    with st.expander(_("Slots held as the reply grows")):
        over_time = this.held_over_time(picture)
        draw_chart(
            line_chart(over_time, this.COUNT, (this.IN_ONE_RUN, this.ON_PAGES, this.STORED), _("Slots"), steps=True),
            over_time, _("Slots held as the reply grows"), key="held_over_time",
        )  # fmt: skip

with parts.notes:
    lesson_page.end(
        LESSON,
        notice=(
            _("Only the last block can have empty slots: at most `block_size - 1`, however long the reply is."),
            _("A block is allocated when the first token needs it, never earlier."),
            _(
                "Small blocks leave fewer slots empty but make the block table longer. The batch lesson "
                "compares the two."
            ),
        ),
        paper=_("Sections 4.2 and 4.3, Fig. 6: block tables, and blocks allocated one at a time"),
    )
