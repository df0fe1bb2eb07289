"""The page that says what fits, without a browser."""

from __future__ import annotations

import json

from tests.app.conftest import OpenPage
from tests.app.test_decode_log import html_of
from tests.capacity.test_published_starts import QWEN_27B


def test_a_model_a_gpu_and_users(open_page: OpenPage) -> None:
    app = open_page("pages/capacity.py")
    assert not app.exception
    html = html_of(app)
    # 90 % of 80 GB, without 16,060,522,496 bytes of weights and 3 GB, in blocks of 2 MB
    assert 'data-figure="blocks">27,669<' in html
    assert 'data-figure="tokens">442,704<' in html
    assert "<b>1</b> run <span>54</span>" in html  # contiguous: 512 blocks reserved for each
    assert "<b>1</b> run <span>100</span>" in html  # paged: 125 blocks each
    assert "All of them run at once; there is room for 221 requests." in html


def test_the_address_sets_the_controls_and_says_what_runs_out_first(open_page: OpenPage) -> None:
    app = open_page("pages/capacity.py", model="Llama 3.1 70B", card="80", gpus="1")
    assert "Nothing is left for the cache" in html_of(app)
    app = open_page("pages/capacity.py", users="5000", seqs="10000")
    assert "Blocks run out first" in html_of(app)
    app = open_page("pages/capacity.py", weights="59")
    assert 'data-figure="blocks">5,120<' in html_of(app)  # 72 - 59 - 3 GB
    app = open_page("pages/capacity.py", gpus="16", precision="8 bits")
    assert "16 GPUs share 8 KV heads" in html_of(app)


def test_a_pasted_config_counts_its_kinds_of_layers(open_page: OpenPage) -> None:
    app = open_page("pages/capacity.py", model="your own config.json")
    assert not app.exception
    app.text_area(key="config_json").set_value(json.dumps(QWEN_27B)).run()
    lines = [text.value for text in app.text]
    assert "48 layers with linear attention: a state of 3.1 MB per layer and request, whatever its length." in lines
    assert "A block of 784 tokens holds 16 layers: 49 MB." in lines
    assert "Layers of several kinds form 4 groups that share the pool; each group takes its own blocks." in lines
    app.text_area(key="config_json").set_value("{<b>").run()
    assert "This is not JSON" in html_of(app)
    assert 'data-figure="tokens"' not in html_of(app)
