"""The policy as the browser enforces it, on the whole app: nothing from elsewhere, nothing inline."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from course.reserved_space.lesson import LESSON as RESERVED_SPACE
from tests.helpers.app_server import AppServer

PNG = b"\x89PNG\r\n\x1a\n"


def test_an_injected_script_neither_runs_nor_connects(context: BrowserContext, app_server: AppServer) -> None:
    page = context.new_page()  # not watched: what it is refused is reported on the console
    page.goto(app_server.url)
    expect(page.get_by_role("heading", name="See PagedAttention work")).to_be_visible(timeout=30_000)
    ran = page.evaluate(
        """async () => {
            const script = document.createElement('script');
            script.textContent = 'window.ranInline = true';
            document.body.append(script);
            const image = document.createElement('img');
            image.setAttribute('onerror', 'window.ranHandler = true');
            image.src = 'data:image/png;base64,x';
            document.body.append(image);
            await new Promise(done => setTimeout(done, 300));
            const reached = await fetch('http://127.0.0.1:9/').then(() => true, error => String(error));
            return [window.ranInline ?? false, window.ranHandler ?? false, reached];
        }"""
    )
    assert ran[:2] == [False, False]
    violations = page.evaluate(
        """() => new Promise(done => {
            document.addEventListener('securitypolicyviolation', e => done(e.effectiveDirective));
            fetch('http://127.0.0.1:9/').catch(() => {});
        })"""
    )
    assert violations == "connect-src"


def test_pictures_can_still_be_exported(page: Page, app_server: AppServer) -> None:
    page.goto(f"{app_server.url}/{RESERVED_SPACE.url_path}")
    the_map = page.locator(".st-key-map_reservation")
    expect(the_map.locator("svg .heading:visible").first).to_be_visible(timeout=30_000)
    for name, start in (("PNG", PNG), ("SVG", b"<svg"), ("JSON", b"{")):
        the_map.locator(".exports summary").click()
        with page.expect_download() as download:
            the_map.locator(".exports .menu button", has_text=name).click()
        assert download.value.path().read_bytes().startswith(start)


@pytest.mark.parametrize("path", ["/", "/reserved_space", "/_stcore/health"])
@pytest.mark.every_case
def test_dns_rebinding_is_refused(app_server: AppServer, path: str) -> None:
    request = urllib.request.Request(app_server.url + path, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 400
    assert "PAGED_KV_HOSTS" in refused.value.read().decode()


def test_metrics_are_off(app_server: AppServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{app_server.url}/_stcore/metrics", timeout=10)
    assert refused.value.code == 404
