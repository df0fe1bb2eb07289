"""Every door that outside input comes through, and what must hold behind it: an answer or a plain refusal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from streamlit.testing.v1 import AppTest

from course.lesson import CoursePage
from course.pages import LESSONS, SUMMARY
from course.waste_between.actions import parse_actions
from course.waste_between.scene import fragmentation
from engine import EngineConfig, SamplingParams
from engine.admission import RequestRefusedError
from engine.model.tokenizer import ByteTokenizer
from engine.remote.kv_events import MessageError, decode_payload
from tests.fuzz import api_requests
from tests.fuzz.nonsense import damaged_traces, json_values, objects, packed_links, sendable_texts, texts
from tests.helpers.app_html import all_html
from tests.helpers.app_server import ROOT
from tests.helpers.hash_model import VOCAB_SIZE, hash_engine
from views.browser.text_safe import visible_piece
from views.lessons import batch, block_table, growth, reserved_space, sharing, waste_between, what_is_cached
from views.live.recipe import Recipe, RecipeError
from views.live.settings import rules
from views.room.place import place_from
from views.room.settings import settings_from
from views.room.websocket import ROOM_ROUTES
from views.server.engine_session import EngineSession
from views.server.frames_route import FRAMES_ROUTES, frames_path
from views.server.opened_traces import read_trace
from views.server.sessions import session_registry
from views.url_values import Rule


@dataclass(frozen=True)
class Target:
    """`try_it` returns when the input was answered or refused in words; anything it raises is a find. `share`: of the
    inputs, measured against the other targets; less where one input takes long."""

    name: str
    inputs: st.SearchStrategy[Any]
    try_it: Callable[[Any], None]
    share: float = 1.0


# ---- addresses ----


def lesson_rules() -> list[Rule]:
    modules = (batch, block_table, growth, reserved_space, sharing, waste_between, what_is_cached)
    made = [value for module in modules for value in vars(module).values() if hasattr(value, "correct")]
    return [rule for rule in made if not isinstance(rule, type)] + [waste_between.ActionsRule()]


RULES = (*lesson_rules(), *rules())


def try_an_address(value: str) -> None:
    """Each control either takes the value, or says what it takes instead, and takes that."""
    for rule in RULES:
        corrected = rule.correct(value)
        if corrected is not None:
            instead, sentence = corrected
            assert sentence.endswith(".")
            assert len(sentence) < 600
            assert rule.correct(str(instead)) is None


def try_actions(text: str) -> None:
    try:
        actions = parse_actions(text)
    except ValueError:
        return
    fragmentation(actions, "first_fit", 32, 2)


def try_a_link(text: str) -> None:
    try:
        recipe = Recipe.from_text(text)
    except RecipeError:
        return
    assert recipe.num_steps >= 0


# ---- files ----


def try_a_trace(text: str) -> None:
    try:
        opened = read_trace(text, "fuzz")
    except ValueError as refusal:
        assert str(refusal)
        return
    assert opened.frames.initial_payload()["is_open"]


def try_a_kv_message(payload: bytes) -> None:
    try:
        decode_payload(payload, 1)
    except MessageError as refusal:
        assert str(refusal)


# ---- prompts ----


@cache
def tokenizer() -> ByteTokenizer:
    return ByteTokenizer()


def try_a_prompt_as_text(text: str) -> None:
    """What goes through the tokenizer comes out again; what is shown has no control character in it."""
    token_ids = tokenizer().encode(text, add_special_tokens=False)
    assert b"".join(tokenizer().piece(token_id) for token_id in token_ids).decode("utf-8") == text
    shown = visible_piece(text)
    assert shown
    assert not any(c < " " for c in shown)


prompts = st.tuples(
    st.lists(st.integers(-2, VOCAB_SIZE + 1), max_size=30),
    st.fixed_dictionaries(
        {},
        optional={
            "max_tokens": st.integers(-2, 12),
            "n": st.integers(-1, 5),
            "beam_width": st.integers(-1, 4),
            "temperature": st.one_of(st.floats(-1, 3), st.just(float("nan"))),
            "top_p": st.floats(-1, 2),
            "top_k": st.integers(-2, 5),
            "stop": st.lists(st.text(max_size=3), max_size=2).map(tuple),
            "seed": st.one_of(st.none(), st.integers(-(2**65), 2**65)),
        },
    ),
)


def try_a_request(prompt: tuple[list[int], Mapping[str, Any]]) -> None:
    """A request is refused in a sentence or runs to its end, beside another one, and gives every block back."""
    token_ids, params = prompt
    engine = hash_engine(EngineConfig(block_size=2, num_blocks=24, max_model_len=40, max_num_seqs=6))
    engine.add_request([1, 2, 3], SamplingParams(max_tokens=2, ignore_eos=True))
    try:
        engine.add_request(token_ids, SamplingParams(**params))
    except (ValueError, RequestRefusedError) as refusal:
        assert str(refusal)
    for _ in range(200):
        if not engine.has_unfinished_requests():
            break
        engine.step()
        engine.check_invariants()
    assert not engine.has_unfinished_requests(), "it never ended"
    assert all(block.ref_cnt == 0 for block in engine.snapshot().blocks)


# ---- sockets ----


@cache
def socket_client() -> tuple[TestClient, EngineSession]:
    session = EngineSession(hash_engine(EngineConfig(block_size=2, num_blocks=4)))
    session_registry().add(session)
    return TestClient(Starlette(routes=[*FRAMES_ROUTES, *ROOM_ROUTES])), session


greetings = st.one_of(
    sendable_texts,
    json_values.map(json.dumps),
    objects("trace_id", "have").map(json.dumps),
    objects("member", "name", "token", "settings", "stuck", "place").map(json.dumps),
)


def try_a_greeting(greeting: str) -> None:
    """The line is served or closed with a code of ours; the server goes on."""
    client, session = socket_client()
    for path in (f"/{frames_path(session)}", "/api/room/ABCD-EFGH"):
        with client.websocket_connect(path) as socket:
            try:
                socket.send_text(greeting)
                socket.receive_text()
            except WebSocketDisconnect as closed:
                assert closed.code in (1000, 1003, 1008), closed.code


def try_room_fields(value: Any) -> None:
    """What a presenter's tab sends along."""
    place_from(value)
    settings_from(value)


# ---- whole pages ----


addresses = st.tuples(
    st.sampled_from([*LESSONS, SUMMARY]),
    st.dictionaries(st.sampled_from(sorted({rule.key for rule in RULES})), sendable_texts, max_size=4),
)


def try_a_page(address: tuple[CoursePage, dict[str, str]]) -> None:
    """The page is drawn: no exception, no traceback."""
    page, query = address
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    app.switch_page(page.file).run()
    assert not app.exception
    assert "Traceback" not in all_html(app)


TARGETS = (
    Target("addresses", texts, try_an_address),
    Target("lists of actions", st.one_of(texts, st.text("ABC-0123456789 +", max_size=30)), try_actions),
    Target("links of a run", packed_links(), try_a_link),
    Target("trace files", st.one_of(damaged_traces(), json_values.map(str)), try_a_trace),
    Target("KV-event messages", st.binary(max_size=200), try_a_kv_message),
    Target("prompts as text", sendable_texts, try_a_prompt_as_text),
    Target("requests", prompts, try_a_request),
    Target("API requests", api_requests.requests, api_requests.try_a_request, share=3),
    Target("socket messages", greetings, try_a_greeting),
    Target("fields of a room", st.one_of(json_values, objects("path", "query", "block_size")), try_room_fields),
    Target("whole pages", addresses, try_a_page, share=0.02),
)
