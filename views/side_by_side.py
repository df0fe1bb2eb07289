"""The layout of a page whose picture stays in view: its title and controls on one side, the picture beside them, and
below both what is as wide as the page. On a phone the picture comes first, its controls under it.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from views.html_parts import small


@dataclass(frozen=True)
class Parts:
    """Places of a page to draw in. assets/page/style.css puts them side by side or under each other.

    controls: under the title. picture: stays in view. notes: under the controls. details: as wide as the page, under
    everything else.
    """

    controls: DeltaGenerator
    picture: DeltaGenerator
    notes: DeltaGenerator
    details: DeltaGenerator


def side_by_side(title: str, remark: str = "") -> Parts:
    """Draw the title, with a remark in small type beside it, and the places for all the rest."""
    with st.container(key="lesson"):
        with st.container(key="lesson_head"):
            st.title(title)
            if remark:
                st.html(small(remark))
        controls = st.container(key="lesson_controls")
        picture = st.container(key="lesson_picture")
        notes = st.container(key="lesson_notes")
    return Parts(controls, picture, notes, st.container(key="lesson_details"))
