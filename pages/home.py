"""Home: what this is, a first picture, what to try on the real model, and the map of the course."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.said import said
from views.backend_banner import draw_banner_of_default_model
from views.course import COURSE, LIVE_ENGINE, WHAT_IS_CACHED, draw_link
from views.lessons.block_table import first_picture
from views.memory_map import memory_map
from views.routes import ROUTES
from views.worded import st
from views.words import translated


@dataclass(frozen=True)
class Try:
    """Something to do on the live page, which opens with `query`."""

    title: str
    query: Mapping[str, str]
    words: str


TRY_FIRST = (
    Try(
        "Watch one table fill",
        {"prompt": "The capital of France is", "block_size": "4", "num_blocks": "32"},
        "Press **Add request**, then **Step**. A block is taken only when a token needs a slot.",
    ),
    Try(
        "Share a prompt between answers",
        {"prompt": "Once upon a time, a small robot", "samples": "3", "block_size": "4"},
        "Three samples of one prompt hold the same blocks, until one of them has to write: then it copies.",
    ),
    Try(
        "Run out of blocks",
        {"prompt": "Three primary colours are", "num_blocks": "8", "block_size": "4", "max_tokens": "20"},
        "Add two requests and press **Run**. When the pool is empty, the later one gives up its blocks and waits.",
    ),
)

st.title("See PagedAttention work")
st.markdown(
    "While a language model writes, it keeps the **keys and values** of every token so far: the KV cache. "
    "PagedAttention keeps them in small **blocks** that may lie anywhere in memory, and a **block table** for each "
    "sequence says where."
)
st.markdown(
    "Behind these pages runs a real engine with a real model, and every picture replays what its memory did. Where a "
    "lesson needs certain words, only the words are scripted, and the page says so."
)

st.markdown(
    "**Press Play.** Three requests write at once. Each takes a block when it needs one, wherever there is room, and "
    "its table keeps the order."
)
memory_map(first_picture().payload, key="map_home", height=300)
draw_link(WHAT_IS_CACHED, "Begin with the first lesson: **{title}**")

st.header("On a real model")
for column, first in zip(st.columns(len(TRY_FIRST)), TRY_FIRST, strict=True):
    with column, st.container(border=True):
        st.page_link(
            LIVE_ENGINE.file, label=f"**{translated(first.title)}**", icon=LIVE_ENGINE.icon, query_params=first.query
        )
        st.markdown(first.words)

st.header("A way through, by the clock")
for column, route in zip(st.columns(len(ROUTES)), ROUTES, strict=True):
    with column, st.container(border=True):
        st.markdown(said("**{route.minutes} minutes**", route=route))
        st.markdown(route.aim)
        for stop in route.stops:
            draw_link(stop.page, "{stop.minutes} min: {title}", {"stop": stop})

st.header("The pages")
for page in COURSE[1:]:
    link, promise = st.columns([1, 2], vertical_alignment="center")
    with link:
        draw_link(page)
    with promise:
        st.markdown(page.promise)

draw_banner_of_default_model()
