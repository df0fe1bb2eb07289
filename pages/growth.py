"""Lesson: a request takes a block when a token needs it, so only its last block can have empty slots."""

from __future__ import annotations

from views import lesson
from views.charts import draw_chart, frame_table, line_chart
from views.course import GROWTH
from views.html_parts import notice
from views.kept import kept, kept_key
from views.lessons import growth as this
from views.tables import block_table_frame
from views.worded import st

lesson.begin(
    GROWTH,
    this.KEY,
    "Cut memory into small **blocks** of equal size; *page* is another word for block. "
    "A request takes one when a token needs a slot, wherever it lies.",
)
lesson.examples(this.KEY, this.EXAMPLES)
size_side, prompt_side, words_side = st.columns(3)
with size_side:
    block_size = kept(this.KEY, this.BLOCK_SIZE, 4)
    st.number_input("Block size", 1, this.LARGEST_BLOCK, key=kept_key(this.KEY, "block_size"))
with prompt_side:
    num_prompt_words = kept(this.KEY, this.PROMPT, 1)
    st.number_input("Words of the prompt", 1, this.LARGEST_PROMPT, key=kept_key(this.KEY, "prompt"))
with words_side:
    choice = kept(this.KEY, this.TEXT, this.PASSAGE)
    st.selectbox("Words", list(this.TEXT.options), key=kept_key(this.KEY, "words"))
own = kept(this.KEY, this.OWN_TEXT, this.DEFAULT_OWN)
if choice == this.OWN:
    st.text_input("Your words, one token each", key=kept_key(this.KEY, "text"), max_chars=this.LONGEST_TEXT)
    if not this.own_words(own):
        st.html(notice("There are no words yet, so the running text is shown."))

picture = this.pages(this.words_to_store(choice, own), block_size, num_prompt_words)
value = lesson.play(this.KEY, picture, name=this.TOKENS, default=this.DEFAULT_TOKENS)
in_layouts, in_blocks = st.columns([2, 3])
with in_layouts:
    st.html(frame_table(this.comparison(picture, value), "One run against pages"))
with in_blocks:
    table = block_table_frame(picture.scene.at(value), "A")
    shown = table[["logical block", "physical block", "written", "empty", "tokens"]]
    st.html(frame_table(shown, "The words in their blocks"))
st.header("Slots held while the reply grows")
over_time = this.held_over_time(picture)
draw_chart(
    line_chart(over_time, this.COUNT, (this.IN_ONE_RUN, this.ON_PAGES, this.STORED), "Slots", steps=True),
    over_time, "Slots held while the reply grows", key="held_over_time",
)  # fmt: skip
lesson.end(
    GROWTH,
    notice=(
        "Full blocks stay as they are. Only the last one can have empty slots, however long the reply is.",
        "A block is taken with the first token that needs it, never earlier.",
        "Small blocks leave less empty and make the table longer. The batch lesson weighs the two.",
    ),
    paper="Sections 4.2 and 4.3, Fig. 6: block tables, and blocks taken one at a time",
)
