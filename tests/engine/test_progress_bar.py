"""`Engine.generate(use_tqdm=...)`: what the bar says after each step, and where there is one unasked."""

from __future__ import annotations

import io
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tqdm import tqdm

from course.scripted_engine import scripted_engine
from engine import Engine, EngineConfig, SamplingParams
from engine.engine import Prompt


def engine() -> Engine:
    """A and B say two and four tokens; a third prompt never fits into its 8 blocks of 4."""
    return scripted_engine(EngineConfig(block_size=4, num_blocks=8), {"A": ["x"] * 2, "B": ["y"] * 4})


PROMPTS: list[Prompt] = ["one two", "three", list(range(10, 60))]
PARAMS = [SamplingParams(max_tokens=count, ignore_eos=True) for count in (2, 4, 4)]


def test_the_bar_counts_ended_prompts_and_generated_tokens_after_each_step() -> None:
    drawn = io.StringIO()
    bar = partial(tqdm, file=drawn, mininterval=0, ascii=True, bar_format="{desc}: {n_fmt}/{total_fmt}{postfix}")
    outputs = engine().generate(PROMPTS, PARAMS, use_tqdm=bar)
    assert [output.error is None for output in outputs] == [True, True, False]
    assert list(dict.fromkeys(line.strip() for line in drawn.getvalue().split("\r") if line.strip())) == [
        "Processed prompts: 0/3",
        "Processed prompts: 1/3, tokens=2",  # the refused one has ended before the first step
        "Processed prompts: 2/3, tokens=4",
        "Processed prompts: 2/3, tokens=5",
        "Processed prompts: 3/3, tokens=6",
    ]


@pytest.mark.parametrize(
    ("use_tqdm", "in_notebook", "is_drawn"),
    [(None, False, False), (None, True, True), (False, True, False), (True, False, True)],
)
def test_a_notebook_has_a_bar_and_a_script_only_one_that_it_asks_for(
    use_tqdm: bool | None,
    in_notebook: bool,
    is_drawn: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config: dict[str, Any] = {"IPKernelApp": {}} if in_notebook else {}
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(config=config))
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    engine().generate(PROMPTS[:2], PARAMS[:2], use_tqdm=use_tqdm)
    assert ("Processed prompts: 100%" in capsys.readouterr().err) is is_drawn
