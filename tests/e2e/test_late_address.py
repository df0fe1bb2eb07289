"""A browser shows an address some time after the server has written it: what it sends meanwhile is no news."""

from __future__ import annotations

from benchmarks.streamlit_client import Tab
from tests.helpers.app_server import AppServer
from tests.helpers.asynchronous import run_to_end

BLOCK_SIZE = "batch_block_size"


async def tab_at_16(tab: Tab) -> None:
    await tab.open("batch", "block_size=8")
    await tab.enter(BLOCK_SIZE, 16)
    assert tab.addresses == ["block_size=16"]


async def a_late_click(url: str) -> list[str]:
    async with Tab(url) as tab:
        await tab_at_16(tab)
        tab.be_late("block_size=8")
        await tab.enter(BLOCK_SIZE, 16)
        return tab.addresses


async def there_and_back_before_the_browser_heard(url: str) -> list[str]:
    async with Tab(url) as tab:
        await tab_at_16(tab)
        tab.be_late("block_size=8")
        await tab.enter(BLOCK_SIZE, 8)
        await tab.enter(BLOCK_SIZE, 8)
        return tab.addresses


async def back_at_once(url: str) -> list[str]:
    async with Tab(url) as tab:
        await tab_at_16(tab)
        await tab.step_through_history("block_size=8")
        return tab.addresses


def test_a_late_click_keeps_the_value(app_server: AppServer) -> None:
    assert run_to_end(a_late_click(app_server.url)) == ["block_size=16", "block_size=16"]


def test_a_restored_value_removes_the_other_one_from_the_url(app_server: AppServer) -> None:
    """Its address says 8 already, and 16 is on its way to it."""
    assert run_to_end(there_and_back_before_the_browser_heard(app_server.url)) == ["block_size=16", "block_size=8"]


def test_an_immediate_history_back_is_applied(app_server: AppServer) -> None:
    """The address that the reader went back to is left as it is."""
    assert run_to_end(back_at_once(app_server.url)) == ["block_size=16"]
