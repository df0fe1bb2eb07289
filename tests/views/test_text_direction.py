"""Hebrew and Arabic run from right to left wherever a page shows text of readers and models."""

from __future__ import annotations

from course.why_not_shared.experiment import Edit
from engine import EngineConfig, SamplingParams
from tests.helpers.hash_model import hash_engine
from views.browser.assets import read_assets
from views.elements.block_table import request_tables
from views.elements.token_chips import chip
from views.lab.why_not_shared import edited
from views.live.request_list import request_list
from views.server.engine_session import EngineSession

HEBREW = "שלום"


def test_a_chip_takes_the_direction_of_its_token() -> None:
    assert chip(HEBREW) == f'<span class="pv-piece" dir="auto">{HEBREW}</span>'


def test_chips_in_tables_and_the_texts_of_requests_take_theirs() -> None:
    session = EngineSession(hash_engine(EngineConfig(block_size=4, num_blocks=8)))
    session.add("0123", SamplingParams(max_tokens=2), as_chat=False)
    session.step(0)
    moment = session.moment
    session.close()
    table = request_tables(moment.state, "A")
    assert table.count('class="pv-piece" dir="auto"') == table.count('class="pv-piece"') > 0
    assert '<div class="pv-text" dir="auto"><bdi class="pv-heard">Prompt: </bdi><span class="prompt"' in request_list(
        moment
    )


def test_an_edit_takes_the_direction_of_its_prompt() -> None:
    assert edited(HEBREW, Edit(HEBREW, 0, 1)).startswith('<div class="pv-text pv-edit" dir="auto"')


def test_what_is_typed_takes_the_direction_of_each_paragraph() -> None:
    style = read_assets("page/style.css")
    assert 'textarea, [data-testid="stTextInput"] input, [data-testid="stText"]) { unicode-bidi: plaintext; }' in style
