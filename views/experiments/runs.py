"""Experiments run in threads of their own, so that no page waits for a model; a page asks, and shows what came.

A result belongs to its inputs: asking again with the same ones runs nothing. No Streamlit here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from engine.model_errors import ModelLoadError

Result = TypeVar("Result")

MOST_AT_ONCE = 2
"""Experiments running at a time on one server; the others wait for their turn."""
MOST_KEPT = 12
"""Results that one tab keeps."""
BROKEN = "The experiment broke off because of a fault in this program. The server's log has the details."

_seats = threading.BoundedSemaphore(MOST_AT_ONCE)


class Run(Generic[Result]):
    """One experiment under way or over. `problem`: a sentence when it could not be done; `result` otherwise."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self.result: Result | None = None
        self.problem = ""
        self._is_wanted = True
        self._over = threading.Event()
        self._since = time.monotonic()
        self._until: float | None = None
        threading.Thread(target=self._do, args=(work,), name="experiment", daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    @property
    def seconds(self) -> float:
        """From when it was asked for until it was over, or until now."""
        return (self._until or time.monotonic()) - self._since

    def wait(self, seconds: float) -> bool:
        """Whether it is over by then."""
        return self._over.wait(seconds)

    def give_up(self) -> None:
        """Do not begin, if it has not begun: nobody looks at the result any more."""
        self._is_wanted = False

    def _do(self, work: Callable[[], Result]) -> None:
        with _seats:
            if self._is_wanted:
                self._work(work)
        self._until = time.monotonic()
        self._over.set()

    def _work(self, work: Callable[[], Result]) -> None:
        try:
            self.result = work()
        except (ValueError, MemoryError, ModelLoadError) as error:
            self.problem = str(error)
        except Exception:
            logging.getLogger(__name__).exception("an experiment failed")
            self.problem = BROKEN


class Runs:
    """One tab's experiments, by name and inputs, the latest kept. `num_asked` counts how often a page asked."""

    def __init__(self) -> None:
        self.num_asked = 0
        self._runs: OrderedDict[tuple[str, Hashable], Run[Any]] = OrderedDict()

    def ask(self, experiment: str, inputs: Hashable, work: Callable[[], Result]) -> Run[Result]:
        """The run with these inputs; started now when there is none. Earlier ones that wait are given up."""
        self.num_asked += 1
        key = (experiment, inputs)
        for other, run in list(self._runs.items()):
            if other[0] == experiment and other != key and not run.is_over:
                run.give_up()
                del self._runs[other]
        run = self._runs[key] if key in self._runs else Run(work)
        self._runs[key] = run
        self._runs.move_to_end(key)
        while len(self._runs) > MOST_KEPT:
            self._runs.popitem(last=False)
        return run
