"""The line on a page about what runs here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import EngineConfig
from engine.components import build_components
from engine.model import device as device_module
from tests.helpers.models import loaded
from views.models.backend_banner import banner_sentence

CONFIG = EngineConfig(model="tiny-random", block_size=4, num_blocks=16)


def test_the_page_names_a_skipped_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(device_module, "NVIDIA_DRIVER", tmp_path)
    info = build_components(CONFIG, loaded("tiny-random")).info
    assert "driver 580 or later" in banner_sentence(info)
    named = build_components(replace(CONFIG, device="cpu"), loaded("tiny-random")).info
    assert "driver" not in banner_sentence(named), "the CPU was asked for"
    assert "None" not in banner_sentence({key: value for key, value in info.items() if key != "device_note"})
