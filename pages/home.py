"""Home: what this is, what to try first, and the map of the course."""

from __future__ import annotations

import streamlit as st

from views.backend_banner import draw_banner_of_default_model
from views.course import COURSE, LIVE_ENGINE
from views.routes import ROUTES

TRY_FIRST = (
    (
        "Watch one table fill",
        {"prompt": "The capital of France is", "block_size": "4", "num_blocks": "32"},
        "Press **Add request**, then **Step**. A block is taken only when a token needs a slot.",
    ),
    (
        "Share a prompt between answers",
        {"prompt": "Once upon a time, a small robot", "samples": "3", "block_size": "4"},
        "Three samples of one prompt hold the same blocks, until one of them has to write: then it copies.",
    ),
    (
        "Run out of blocks",
        {"prompt": "Three primary colours are", "num_blocks": "8", "block_size": "4", "max_tokens": "20"},
        "Add two requests and press **Run**. When the pool is empty, the later one gives up its blocks and waits.",
    ),
)

st.title("See PagedAttention work")
st.markdown(
    """
While a language model writes, it keeps the **keys and values** of every token so far: the KV cache. PagedAttention
keeps them in small **blocks** that may lie anywhere in memory, and a **block table** for each sequence says where.

Behind these pages runs a real engine with a real model, and every picture replays what its memory did. Where a lesson
needs certain words, only the words are scripted, and the page says so.
"""
)

st.header("Try first")
for column, (title, query, words) in zip(st.columns(len(TRY_FIRST)), TRY_FIRST, strict=True):
    with column, st.container(border=True):
        st.page_link(LIVE_ENGINE.file, label=f"**{title}**", icon=LIVE_ENGINE.icon, query_params=query)
        st.markdown(words)

st.header("A way through, by the clock")
for column, route in zip(st.columns(len(ROUTES)), ROUTES, strict=True):
    with column, st.container(border=True):
        st.markdown(f"**{route.minutes} minutes**")
        st.markdown(route.aim)
        for stop in route.stops:
            st.page_link(stop.page.file, label=f"{stop.minutes} min: {stop.page.title}", icon=stop.page.icon)

st.header("The pages")
for page in COURSE[1:]:
    link, promise = st.columns([1, 2], vertical_alignment="center")
    link.page_link(page.file, label=f"**{page.title}**", icon=page.icon)
    promise.markdown(page.promise)

draw_banner_of_default_model()
