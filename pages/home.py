"""Home: the race as an opening picture, what to try on the real model, and the ways through the course."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from course.messages import Plural, fill
from course.pages import COURSE, LESSONS, LIVE_ENGINE
from course.routes import ROUTES
from engine.i18n import N_, _
from engine.sampling_params import SamplingParams
from views.lab.race_animation import race_animation
from views.live.config import live_config
from views.live.recipe import Recipe
from views.models.backend_banner import draw_banner_of_default_model
from views.navigation import draw_link
from views.server.commands import AddRequest
from views.server.model_registry import model_names

OPENING = Plural(
    "num_requests",
    "Memory decides how many users a GPU can serve. Here, the same {n} request arrives at the "
    "same memory twice. If each reserves a **contiguous** region for the longest reply, "
    "**{contiguous.most_running}** run at once. If each gets small **blocks**, one when a token "
    "needs it, **{paged.most_running}** run at once.",
    "Memory decides how many users a GPU can serve. Here, the same {n} requests arrive at the "
    "same memory twice. If each reserves a **contiguous** region for the longest reply, "
    "**{contiguous.most_running}** run at once. If each gets small **blocks**, one when a token "
    "needs it, **{paged.most_running}** run at once.",
)
LEGEND = N_(
    "Each colour is a request: dark slots store keys and values of its tokens, light slots are "
    "held but empty. Dashed: free."
)

DARK_INK, LIGHT_INK = "#1B2733", "#E6EAF0"


@dataclass(frozen=True)
class Try:
    """Something to do on the live page, which opens with `query`."""

    title: str
    query: Mapping[str, str]
    words: str


def two_prompts_in_a_small_pool() -> str:
    """A run for the live page's address: two requests that together outgrow the pool."""
    config = live_config(model_names()[0], block_size=4, num_blocks=9, prefix_caching=True, preemption="recompute")
    prompts = ("The sky is", "Once upon a")
    params = SamplingParams(temperature=0.0, max_tokens=24, seed=0, ignore_eos=True)
    commands = tuple(AddRequest(0, prompt, params) for prompt in prompts)
    run = Recipe(config, commands, num_steps=0).to_text()
    assert run is not None
    return run


TRY_FIRST = (
    Try(
        N_("Watch a block table fill"),
        {"prompt": "The capital of France is", "block_size": "4", "num_blocks": "32"},
        N_("Press **Add request**, then **Step**. A block is allocated only when a token needs a slot."),
    ),
    Try(
        N_("Share a prompt between answers"),
        {"prompt": "Once upon a time, a small robot", "samples": "3", "block_size": "4"},
        N_(
            "Three samples of one prompt share its blocks. Before one writes into a shared block, it gets "
            "a private copy."
        ),
    ),
    Try(
        N_("Run out of blocks"),
        {"run": two_prompts_in_a_small_pool()},
        N_(
            "Two prompts in a small pool: press **Run**. When no block is free, the newer request is "
            "**preempted**: its blocks are freed, and it waits."
        ),
    ),
)


def draw_opening() -> None:
    """The race plays by itself; a new number makes the browser draw it anew, so that it plays again."""
    race = race_animation()
    ink = LIGHT_INK if st.context.theme.type == "dark" else DARK_INK
    st.markdown(fill(OPENING, race.facts()))
    st.html(f'<div data-plays="{st.session_state.get("race_plays", 0)}">{race.pictures(ink)}</div>')
    st.html(f'<p class="pv-scripted">{_(LEGEND)}</p>')
    with st.container(horizontal=True, vertical_alignment="center", key="opening"):
        st.page_link(LESSONS[0].file, label=_("**How?** Begin with lesson 1"), icon=":material/arrow_forward:")
        st.button(_("Play again"), key="play_race_again", on_click=play_again)
        for name, text, file in (
            (_("Save the picture"), race.still, "contiguous_or_paged.svg"),
            (_("Save the animation"), race.animation, "contiguous_or_paged_animated.svg"),
        ):
            st.download_button(name, text, file, "image/svg+xml", on_click="ignore")


def play_again() -> None:
    st.session_state["race_plays"] = st.session_state.get("race_plays", 0) + 1


def draw_ways_on() -> None:
    """The real model, routes through the course, every page, what runs here."""
    st.header(_("On a real model"))
    for column, first in zip(st.columns(len(TRY_FIRST)), TRY_FIRST, strict=True):
        with column, st.container(border=True):
            st.page_link(
                LIVE_ENGINE.file, label=f"**{_(first.title)}**", icon=LIVE_ENGINE.icon, query_params=first.query
            )
            st.markdown(_(first.words))

    with st.expander(_("A way through in 15, 45 or 90 minutes")):
        for column, route in zip(st.columns(len(ROUTES)), ROUTES, strict=True):
            with column, st.container(border=True):
                st.markdown(_("**{route.minutes} minutes**").format(route=route))
                st.markdown(_(route.aim))
                for stop in route.stops:
                    draw_link(stop.page, _("{stop.minutes} min: {title}"), {"stop": stop})

    with st.expander(_("All pages")):
        for page in COURSE[1:]:
            link, promise = st.columns([1, 2], vertical_alignment="center")
            with link:
                draw_link(page)
            with promise:
                st.markdown(_(page.promise))

    draw_banner_of_default_model()


st.title(_("See PagedAttention work"))
with st.container(key="home_race"):
    draw_opening()
with st.container(key="home_more"):
    draw_ways_on()
