"""Values that nobody would send in good faith."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from hypothesis import strategies as st

from tests.helpers.map_traces import busy, gaps, two_answers

HOSTILE = (
    "", " ", "\0", "NaN", "inf", "-inf", "1e999", "-1", "0", "1" * 400, "٣", "½", "0x10", "true", "null", "[]", "{}",
    "<img src=x onerror=alert(1)>", "</script><script>", "$5 `x` **b** :red[y]", "👩‍👩‍👧‍👦", "مرحبا",
    "\ud800", "\u202e", "../../etc/passwd", "A" * 300, "%00", "\r\nSet-Cookie: x=1",
)  # fmt: skip

texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60), st.floats().map(str), st.integers().map(str))
sendable_texts = texts.map(lambda text: text.encode("utf-8", "replace").decode("utf-8"))
"""Without halves of characters, which no address and no socket can carry."""
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.sampled_from(HOSTILE), st.text(max_size=20)
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=8,
)
"""JSON as Python reads it: NaN and Infinity too."""


def objects(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that have some of these fields, with anything in them."""
    return st.dictionaries(st.one_of(st.sampled_from(names), st.text(max_size=6)), json_values, max_size=6)


VALID_TRACES = tuple(make().to_json() for make in (two_answers, busy, gaps))


@st.composite
def damaged_traces(draw: st.DrawFn) -> str:
    """A real trace in which a few things are something else, left out, twice, or in another order."""
    document = json.loads(draw(st.sampled_from(VALID_TRACES)))
    events = document["events"]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(events) - 1))
        deed = draw(st.sampled_from(("field", "drop", "double", "swap", "replace", "document")))
        if deed == "field":
            record = events[at] if isinstance(events[at], dict) else {}
            events[at] = {**record, draw(st.sampled_from(sorted(record) or ["step"])): draw(json_values)}
        elif deed == "drop" and len(events) > 1:
            del events[at]
        elif deed == "double":
            events.insert(at, events[at])
        elif deed == "swap":
            other = draw(st.integers(0, len(events) - 1))
            events[at], events[other] = events[other], events[at]
        elif deed == "replace":
            events[at] = draw(json_values)
        else:
            document[draw(st.sampled_from(("schema", "info", "events", "other")))] = draw(json_values)
            if not isinstance(document.get("events"), list) or not document["events"]:
                break
            events = document["events"]
    text = json.dumps(document)
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) and draw(st.booleans()) else text


@st.composite
def packed_links(draw: st.DrawFn) -> str:
    """What stands in the address of a live run: packed as the app packs it, with anything inside."""
    inside = draw(st.one_of(json_values, st.tuples(st.just(1), json_values, json_values, json_values)))
    packed = zlib.compress(json.dumps(inside).encode("utf-8", "surrogatepass"))
    text = base64.urlsafe_b64encode(packed).decode("ascii")
    return draw(st.one_of(st.just(text), st.just(text[:-3]), texts))
