"""The server is killed under eight tabs that speak its protocol: all are back where and who they were."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.room_kill import measure

pytestmark = pytest.mark.slow  # a server that is killed is rare


def test_every_tab_restores_page_position_and_settings_after_a_server_kill() -> None:
    with ThreadPoolExecutor(max_workers=1) as pool:  # the browser's driver keeps a loop running in this thread
        found = pool.submit(measure, 8, "tiny-random").result()
    assert found["on_the_lesson_before"] == 8
    assert found["back_on_page_position_and_settings"] == 8
    assert found["back_as_who_they_were"] == 8
    assert found["attendees_the_presenter_counts"] == 7
    assert found["tracebacks"] == 0
