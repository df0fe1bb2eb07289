"""The record of lesson "What is cached"."""

from __future__ import annotations

from course.lesson import Lesson
from engine.i18n import N_, _


def _summary() -> str:
    from course.what_is_cached.scene import what_is_cached
    from course.words import FOX

    scene = what_is_cached(FOX[:3], FOX[3:])
    before, after = (scene.at(value).sequences["A"] for value in scene.values[-2:])
    return _("While a model generates, it keeps the keys and values of every token so far: the KV cache. "
"Each step adds those of one token: {before.num_computed_tokens} tokens stored, then "
"{after.num_computed_tokens}.").format(before=before, after=after)  # fmt: skip


LESSON = Lesson(
    order=10,
    key="what_is_cached",
    title=N_("What is cached"),
    short_name=N_("What is cached"),
    section="learn",
    icon=":material/inventory_2:",
    url_path="what_is_cached",
    promise=N_(
        "Keys and values of every token so far: how many bytes one token takes, and how many tokens fit on a GPU."
    ),
    minutes={90: 7},
    sliders={"tokens": N_("Tokens")},
    explains=N_("What the KV cache keeps, and how many bytes one token costs"),
    summary=_summary,
)
