"""A page that fails where the address says, once its button is pressed."""

from __future__ import annotations

import streamlit as st

from views.error_handler import show_error_sentence


def fail() -> None:
    raise RuntimeError("on purpose")


def main() -> None:
    where = st.query_params["where"]
    pressed = st.button("Go", on_click=fail if where == "callback" else None)
    if pressed and where == "script":
        fail()
    if pressed and where == "fragment":
        st.fragment(fail)()


if st.runtime.exists():
    main()
else:
    app = st.App(__file__, on_script_error=show_error_sentence)
