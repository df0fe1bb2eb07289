"""The doctor: what it finds on this machine is true, and each thing that can be wrong is named with its fix."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from engine.doctor.model import NetworkRefusedError, check_model, no_network
from engine.doctor.network import check_browser, check_own_address, check_port
from engine.doctor.surroundings import (
    MEMORY_BYTES,
    check_disk,
    check_memory,
    check_packages,
    check_python,
    pinned_packages,
)
from tests.helpers.app_server import ROOT
from views.checkups import Checkups
from views.doctor import Checkup, checkup_html, run_checkup


@pytest.mark.parametrize(("python", "ready"), [((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False)])
def test_python_must_be_one_that_the_packages_exist_for(python: tuple[int, int], ready: bool) -> None:
    assert check_python(python).is_ready is ready


def test_the_installed_packages_are_those_of_the_requirements() -> None:
    assert check_packages().is_ready
    assert ("torch", "==2.13.0") in list(pinned_packages())


def test_a_missing_and_an_old_package_are_named() -> None:
    def installed(name: str) -> str:
        if name == "plotly":
            raise PackageNotFoundError(name)
        return "0.1" if name == "pandas" else version(name)

    finding = check_packages(installed)
    assert finding.found == "plotly is not installed; pandas is 0.1, tested with ==3.1.1."
    assert "pip install -r requirements.txt" in finding.fix


def test_a_build_of_the_right_version_is_right() -> None:
    assert check_packages(lambda name: f"{version(name).split('+')[0]}+cu130").is_ready


def test_memory_and_disk_are_asked_for_as_much_as_is_needed(tmp_path: Path) -> None:
    assert check_memory(MEMORY_BYTES).is_ready
    assert check_memory(None).is_ready
    assert "1.5 GB" in check_memory(MEMORY_BYTES - 1).fix
    assert check_disk(tmp_path / "not" / "there", 1).is_ready
    assert "PAGED_KV_CACHE_DIR" in check_disk(tmp_path, 2**62).fix


def test_a_taken_port_is_said_with_the_next_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        finding = check_port(port)
    assert finding.found == f"Port {port} is taken."
    assert f"--server.port {port + 1}" in finding.fix
    assert check_port(port).is_ready


def test_this_machine_can_fetch_its_own_page_and_a_proxy_in_between_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert check_own_address().is_ready
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert "NO_PROXY" in check_own_address().fix


def test_a_machine_without_a_browser_is_told_so() -> None:
    assert check_browser(lambda: "firefox").is_ready
    assert "Install" in check_browser(lambda: "").fix


def test_a_model_that_is_absent_or_damaged_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGED_KV_CACHE_DIR", str(tmp_path))
    assert check_model().found.startswith("Not on this machine yet")
    folder = tmp_path / "smollm2-135m-instruct-1"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"weights.safetensors": "0" * 64}))
    (folder / "weights.safetensors").write_bytes(b"half")
    assert check_model().found.startswith("Damaged")


def test_no_connection_leaves_this_machine_while_the_network_is_off() -> None:
    with no_network(), socket.socket() as stranger, pytest.raises(NetworkRefusedError):
        stranger.connect(("192.0.2.1", 80))
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        here.listen()
        with no_network(), socket.socket() as caller:
            caller.connect(here.getsockname())


@pytest.mark.embedded
def test_the_command_says_every_check_and_ends_with_its_verdict(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "engine.doctor", "--json", "--skip", "Port", "--skip", "Browser"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    lines = [json.loads(line) for line in answer.stdout.splitlines()]
    begun = [line["checking"] for line in lines if "checking" in line]
    findings = [line for line in lines if "checking" not in line]
    names = ["Python", "Packages", "Backend", "Model", "Memory", "Offline", "Own address"]
    assert [finding["name"] for finding in findings] == names == begun
    assert [finding for finding in findings if not finding["ready"]] == []
    assert answer.returncode == 0
    [offline] = [finding for finding in findings if finding["name"] == "Offline"]
    assert "Paris" in offline["found"]


def test_a_checkup_is_made_once_for_those_who_ask_together() -> None:
    made = [Checkup((), "12:00", 0.1), Checkup((), "12:01", 0.1)]
    board = Checkups(lambda: made.pop(0))
    board.renew()
    assert board.latest is not None and board.latest.clock == "12:00"
    board.renew()
    assert board.latest.clock == "12:01"


DOCTOR_WITH_ONE_BAD_CHECK = """
import sys, time
from engine.doctor import __main__, surroundings
def check_packages():
    {deed}
surroundings.check_packages = check_packages
sys.exit(__main__.main(["--json", "--skip", "Port"]))
"""


def doctor_that(deed: str) -> tuple[str, ...]:
    """The real one, with one check that does this instead."""
    return sys.executable, "-c", DOCTOR_WITH_ONE_BAD_CHECK.format(deed=deed)


def test_a_check_that_does_not_answer_is_named_with_the_limit_and_what_to_do() -> None:
    checkup = run_checkup(doctor_that("time.sleep(600)"), seconds=8)
    assert [finding.name for finding in checkup.findings] == ["Python", "Packages"]
    assert [finding.is_ready for finding in checkup.findings] == [True, False]
    stuck = checkup.problems[0]
    assert stuck.found == "No answer after 8 s, the limit for all checks together. Later checks were not made."
    assert stuck.fix.startswith("Press the button again")
    assert "Not ready yet: Packages. The last column says what to do." in checkup_html(checkup)


def test_a_doctor_that_ends_in_the_middle_does_not_call_the_machine_ready() -> None:
    checkup = run_checkup(doctor_that("raise OSError"))
    assert [finding.name for finding in checkup.problems] == ["Packages"]
    assert checkup.problems[0].found == "The doctor ended in the middle of this check."


def test_a_doctor_that_says_nothing_does_not_call_the_machine_ready() -> None:
    checkup = run_checkup((sys.executable, "-c", ""))
    assert [finding.name for finding in checkup.problems] == ["The doctor"]
    assert checkup.problems[0].found == "The doctor ended in the middle of this check."


def test_a_page_shows_each_finding_escaped() -> None:
    checkup = Checkup((check_python((3, 9)),), "12:00", 1.0)
    html = checkup_html(checkup)
    assert 'data-check="Python" data-ready="false"' in html
    assert "Not ready yet: Python." in html
