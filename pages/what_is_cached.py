"""Lesson: the KV cache grows by one token's keys and values each step, and what that costs."""

from __future__ import annotations

import streamlit as st

from course.what_is_cached.lesson import LESSON
from engine.i18n import N_, _
from views import lesson_page
from views.elements.charts import frame_table
from views.figures import figure_rows
from views.html_parts import figures, notice
from views.lesson_picture import first_with_tokens
from views.lessons import what_is_cached as this
from views.server.model_registry import default_model, model_registry
from views.url_state import get_url_value, url_value_key

parts = lesson_page.begin(
    LESSON,
    _(
        "Why does generating text take so much GPU memory besides the weights? To choose the next "
        "**token** (a word or a part of one), the newest token's **query** is compared with the "
        "**key** of every token so far; the scores weight their **values**. Keys and values are kept, "
        "not computed again: that is the **KV cache**."
    ),
)
with parts.controls, lesson_page.knobs(this.KEY):
    model = get_url_value(this.KEY, this.MODEL, this.MODEL.options[0])
    st.selectbox(_("Model"), list(this.MODELS), key=url_value_key(this.KEY, "model"))
    precision = get_url_value(this.KEY, this.PRECISION, this.PRECISION.options[0])
    st.selectbox(_("Precision"), list(this.PRECISIONS), format_func=_, key=url_value_key(this.KEY, "precision"))
    card = get_url_value(this.KEY, this.CARD, 80)
    st.number_input(_("GPU memory, in GB"), 1, this.LARGEST_CARD, key=url_value_key(this.KEY, "card"))

with parts.picture:
    picture = this.cached(model, precision)
    lesson_page.play(this.KEY, picture, name=this.TOKENS, default=first_with_tokens(picture.scene))
    lesson_page.say_what_is_scripted()

with parts.details:
    st.header(_("What fits on a GPU"))
    facts = this.card_facts(model, precision, card)
    st.html(figures(figure_rows(this.CARD_FIGURES, facts)))
    lesson_page.captions(
        N_(
            "One key and one value for each of {model.num_layers} layers and {model.num_kv_heads} KV "
            "heads, with head dimension {model.head_dim}: {per_token} per token."
        ),
        N_(
            "A server uses {usable} of this GPU, as with vLLM's usual gpu_memory_utilization; memory for "
            "activations is not counted. The weights take {weights}; the rest holds {fit.num_tokens:,} "
            "tokens, of all requests together."
        )
        if facts["fit"].weights_fit
        else N_(
            "The weights alone take {weights}, and a server uses {usable} of this GPU: nothing is left "
            "for the KV cache."
        ),
        facts=facts,
    )
    rows = [(known, this.PRECISIONS[precision]) for known in this.MODELS.values()]
    running = model_registry().request(default_model()).model
    if running is not None:
        rows.insert(0, this.running_model(running.weights, running.info))
    else:
        st.html(notice(_("This server's model is still loading. It appears in the table when it is ready.")))
    st.html(frame_table(this.models_frame(rows, card), _("From each model's configuration; 1 KB is 1,024 bytes")))

with parts.notes:
    lesson_page.end(
        LESSON,
        notice=(
            _("A request's cache grows with every token and is freed only when the request ends."),
            _("With grouped-query attention, several query heads share one KV head, so a token takes fewer bytes."),
            _("How many requests can run at once depends mostly on how many such caches fit in memory."),
        ),
        paper=_("Sections 2.2 and 3: what is cached, and how many bytes one token of OPT-13B takes"),
    )
