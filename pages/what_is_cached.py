"""Lesson: the KV cache grows by one token's keys and values each step, and what that costs."""

from __future__ import annotations

from views import lesson
from views.charts import frame_table
from views.course import WHAT_IS_CACHED
from views.html_parts import figures, notice
from views.kept import kept, kept_key
from views.lessons import what_is_cached as this
from views.server import default_model, model_shelf
from views.told import told_figures
from views.worded import st

lesson.begin(
    WHAT_IS_CACHED,
    this.KEY,
    "A token is a word or a piece of one. To choose the next one, a model holds the newest token against a **key** of "
    "every token before it, and mixes their **values**. Both are kept, so that no step computes them again: "
    "that store is the **KV cache**.",
)
model_side, precision_side, card_side = st.columns(3)
with model_side:
    model = kept(this.KEY, this.MODEL, this.MODEL.options[0])
    st.selectbox("Model", list(this.MODELS), key=kept_key(this.KEY, "model"))
with precision_side:
    precision = kept(this.KEY, this.PRECISION, this.PRECISION.options[0])
    st.selectbox("A number takes", list(this.PRECISIONS), key=kept_key(this.KEY, "precision"))
with card_side:
    card = kept(this.KEY, this.CARD, 80)
    st.number_input("Card, in GB", 1, this.LARGEST_CARD, key=kept_key(this.KEY, "card"))

picture = this.cached(model, precision)
lesson.play(this.KEY, picture, name=this.TOKENS, default=this.DEFAULT_TOKENS)

st.header("What fits on a card")
facts = this.card_facts(model, precision, card)
st.html(figures(told_figures(this.CARD_FIGURES, facts)))
lesson.beats(
    "A key and a value, for each of {model.num_layers} layers and {model.num_kv_heads} key-value heads, "
    "{model.head_dim} numbers each: {per_token} a token.",
    "A server fills {usable} of the card. Weights take {weights}; what is left holds {fit.num_tokens:,} tokens, "
    "of all requests together."
    if facts["fit"].weights_fit
    else "The weights alone take {weights}, and a server fills {usable} of this card: nothing is left for a cache.",
    facts=facts,
)
rows = [(known, this.PRECISIONS[precision]) for known in this.MODELS.values()]
running = model_shelf().ask(default_model()).model
if running is not None:
    rows.insert(0, this.running_model(running.weights, running.info))
else:
    st.html(notice("The model of this server is still loading; it joins the table when it is there."))
st.html(frame_table(this.models_frame(rows, card), "From each model's own configuration; 1 KB is 1,024 bytes"))

lesson.end(
    WHAT_IS_CACHED,
    notice=(
        "The cache grows with every token and shrinks only when a request ends.",
        "Several attention heads may share one key-value head. Then a token costs less.",
        "How many requests run at once is mostly a question of how many such caches fit.",
    ),
    paper="Sections 2.2 and 3: what is cached, and what one token of OPT-13B costs",
)
