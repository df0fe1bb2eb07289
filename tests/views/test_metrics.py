"""The app's metrics: sums over all open sessions, and counters that keep what closed sessions counted."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

import pytest

from engine import EngineConfig, SamplingParams
from tests.helpers.app_server import ROOT, running_app
from tests.helpers.hash_model import hash_engine
from views.server.engine_session import EngineSession
from views.server.metrics import AppMetrics
from views.server.security import METRICS_VARIABLE

CONFIG = EngineConfig(block_size=4, num_blocks=10)
THREE = SamplingParams(temperature=0.0, max_tokens=3, ignore_eos=True)


def figures(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r'^([\w:]+)\{model_name="m"\} (\S+)$', text, re.MULTILINE)}


@pytest.fixture
def sessions() -> list[EngineSession]:
    both = [EngineSession(hash_engine(CONFIG)) for _ in range(2)]
    for session in both:
        session.add('!"#$%&', THREE, as_chat=False)
        session.step(0)
    return both


def test_gauges_and_counters_are_sums_over_open_sessions(sessions: list[EngineSession]) -> None:
    shown = figures(AppMetrics().text(sessions, "m"))
    assert shown["vllm:num_requests_running"] == 2
    assert shown["vllm:kv_cache_usage_perc"] == 4 / 20
    assert shown["vllm:prompt_tokens_total"] == 12
    assert shown["vllm:generation_tokens_total"] == 2
    assert shown["vllm:prefix_cache_queries_total"] == 12
    assert shown["paged_kv:step_time_seconds_count"] == 2
    assert shown["paged_kv:step_time_seconds_sum"] > 0


def test_counters_keep_what_a_closed_session_counted(sessions: list[EngineSession]) -> None:
    metrics = AppMetrics()
    metrics.text(sessions, "m")
    sessions[0].step(1)
    assert figures(metrics.text(sessions, "m"))["vllm:generation_tokens_total"] == 3
    left = figures(metrics.text(sessions[1:], "m"))
    assert left["vllm:generation_tokens_total"] == 3
    assert left["vllm:num_requests_running"] == 1
    assert left["vllm:kv_cache_usage_perc"] == 2 / 10
    nobody = figures(metrics.text([], "m"))
    assert (nobody["vllm:generation_tokens_total"], nobody["vllm:kv_cache_usage_perc"]) == (3, 0)


def test_the_server_exposes_metrics_when_they_are_turned_on(tmp_path: Path) -> None:
    environment = {"PAGED_KV_MODEL": "tiny-random", METRICS_VARIABLE: "1"}
    with (
        running_app(ROOT / "app.py", tmp_path / "log", environment) as server,
        urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer,
    ):
        text = answer.read().decode()
    assert 'vllm:num_requests_waiting{model_name="tiny-random"} 0' in text
    assert "# TYPE vllm:num_preemptions_total counter" in text
