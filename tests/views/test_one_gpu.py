"""Two tabs, a room and an experiment at once over one GPU, with its CUDA graphs emulated."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar

import pytest

from course.shuffle.experiment import ShuffleReport, shuffle_experiment
from engine import Engine, EngineConfig, SamplingParams
from engine.components import build_components
from engine.model.cuda_graphs import StaticBatch, _Recorded
from engine.model.llama import ModelInputs
from engine.runner import ModelRunner
from engine.scheduler import ScheduledSequence
from tests.helpers.emulated_graphs import EmulatedGraphs
from tests.helpers.emulated_graphs_plugin import install
from tests.helpers.models import loaded
from tests.helpers.waiting import until
from views.room.presenter_api import presenter_api
from views.room.rooms import Rooms
from views.room.settings import RoomSettings
from views.server.engine_session import EngineSession

PROMPTS = ("The red fox", "a b c d e", "é日")
PARAMS = SamplingParams(max_tokens=24, ignore_eos=True)
CONFIG = EngineConfig(model="tiny-random", block_size=4, num_blocks=60, max_model_len=64)


class ExclusiveGraphs(EmulatedGraphs):
    """Notes the steps that another thread began while a graph was recorded, which would invalidate it on a card."""

    num_steps_begun = 0
    num_recordings = 0
    intrusions: ClassVar[list[int]] = []

    def _record(self, batch: StaticBatch) -> _Recorded:
        cls = ExclusiveGraphs
        cls.num_recordings += 1
        before = cls.num_steps_begun
        recorded = super()._record(batch)
        time.sleep(0.02)  # long enough for any thread that is let in
        cls.intrusions += [cls.num_steps_begun - before] if cls.num_steps_begun != before else []
        return recorded


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[ExclusiveGraphs]]:
    prepare = ModelRunner.prepare
    session_of(CONFIG).engine.generate(["a"], PARAMS)  # kernels are compiled now, by nobody whose patience ends

    def counted(self: ModelRunner, items: list[ScheduledSequence]) -> ModelInputs:
        ExclusiveGraphs.num_steps_begun += 1
        return prepare(self, items)

    monkeypatch.setattr(ModelRunner, "prepare", counted)
    ExclusiveGraphs.num_recordings, ExclusiveGraphs.intrusions = 0, []
    patch = install(ExclusiveGraphs)
    yield ExclusiveGraphs
    patch.undo()


def session_of(config: EngineConfig) -> EngineSession:
    return EngineSession(Engine(config, build_components(config, loaded("tiny-random"))))


def finished(session: EngineSession) -> dict[str, str]:
    until(lambda: not session.moment.has_unfinished, seconds=300)
    return dict(session.moment.texts)


def live_tab() -> dict[str, str]:
    session = session_of(CONFIG)
    for prompt in PROMPTS:
        session.add(prompt, PARAMS, as_chat=False)
    session.run(0.0)
    return finished(session)


def room() -> dict[str, str]:
    rooms = Rooms()
    room = rooms.start(RoomSettings())
    session = room.engine.open(partial(session_of, room.settings.config("tiny-random")))
    for prompt in PROMPTS:
        room.add_prompt(room.join("Ada").id, prompt, 24)
    presenter_api(room, room.token).run(0.0)
    try:
        return finished(session)
    finally:
        rooms.close_all()


def experiment() -> ShuffleReport:
    make = partial(build_components, loaded=loaded("tiny-random"))
    return shuffle_experiment(make, CONFIG, PROMPTS, PARAMS)


def test_concurrent_engines_write_what_each_writes_alone(graphs: type[ExclusiveGraphs]) -> None:
    alone = (live_tab(), room(), experiment())
    start = threading.Barrier(4)

    def together(run: object) -> object:
        start.wait()
        return run()  # type: ignore[operator]

    with ThreadPoolExecutor(4) as threads:
        tab, other_tab, in_room, report = threads.map(together, (live_tab, live_tab, room, experiment))
    assert (tab, in_room) == alone[:2] and other_tab == tab
    assert len(tab) == 3 and all(tab.values())  # type: ignore[attr-defined, arg-type]
    assert isinstance(report, ShuffleReport)
    for ours, before in ((report.with_tables, alone[2].with_tables), (report.memory_only, alone[2].memory_only)):
        assert ours.replies == before.replies
    assert graphs.num_recordings > 8
    assert graphs.intrusions == []
