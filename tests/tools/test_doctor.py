"""The doctor: its findings about this machine are true, and each problem comes with its fix."""

from __future__ import annotations

import errno
import hashlib
import http.server
import json
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import engine
from course.finding import Finding
from engine.model.load_report import ignore_progress
from engine.model.weights.embedded import embedded_folder
from engine.outputs import RequestOutput, SequenceOutput
from tests.helpers.app_server import ROOT
from tests.helpers.waiting import PATIENCE, until
from tools.doctor import __main__ as doctor
from tools.doctor.checks import run_checks
from tools.doctor.model import NetworkRefusedError, check_backend, check_model, check_offline, no_network, unused_cuda
from tools.doctor.network import check_browser, check_own_address, check_port
from tools.doctor.system import (
    CPU_REQUIREMENTS,
    MEMORY_BYTES,
    REQUIREMENTS,
    ROCM_REQUIREMENTS,
    check_disk,
    check_memory,
    check_packages,
    check_python,
    pinned_packages,
)
from views.server.readiness import LatestReport, ReadinessReport, run_doctor


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


def test_every_requirement_is_checked() -> None:
    lines = [line for line in REQUIREMENTS.read_text("utf-8").splitlines() if not line.startswith("#")]
    here = [line for line in lines if "sys_platform" not in line or f'"{sys.platform}"' in line]
    assert len(list(pinned_packages())) == len(here)


def test_a_build_of_the_right_version_is_right() -> None:
    assert check_packages(lambda name: f"{version(name).split('+')[0]}+cu130").is_ready


def on_rocm(name: str) -> str:
    """A machine with torch's build for ROCm, whose triton is a package of another name."""
    if name == "triton":
        raise PackageNotFoundError(name)
    return f"{version(name).split('+')[0]}+rocm7.2" if name == "torch" else version(name)


def test_a_torch_for_rocm_brings_its_own_triton() -> None:
    assert check_packages(on_rocm).is_ready
    old = check_packages(lambda name: "0.1" if name == "pandas" else on_rocm(name))
    assert "pip install -r requirements-rocm.txt" in old.fix
    both = check_packages(lambda name: "3.7.1" if name == "triton" else on_rocm(name))
    assert "lies over" in both.found and "pip uninstall triton" in both.fix


def test_the_requirements_for_rocm_are_the_others_without_triton() -> None:
    others = [pin for pin in pinned_packages() if pin[0] != "triton"]
    assert list(pinned_packages(ROCM_REQUIREMENTS)) == others


def on_cpu_build(name: str) -> str:
    """Linux without a GPU, after `pip install -r requirements-cpu.txt`."""
    if name == "triton":
        raise PackageNotFoundError(name)
    return f"{version(name).split('+')[0]}+cpu" if name == "torch" else version(name)


def test_a_torch_without_cuda_needs_no_triton() -> None:
    assert check_packages(on_cpu_build).is_ready
    old = check_packages(lambda name: "0.1" if name == "pandas" else on_cpu_build(name))
    assert "pip install -r requirements-cpu.txt" in old.fix


def test_the_requirements_without_cuda_are_the_others_without_triton() -> None:
    others = [pin for pin in pinned_packages() if pin[0] != "triton"]
    assert list(pinned_packages(CPU_REQUIREMENTS)) == others


@pytest.mark.parametrize(
    ("cuda", "has_driver", "warns"), [("13.0", False, True), ("13.0", True, False), (None, False, False)]
)
def test_cuda_libraries_that_nothing_can_use_are_said(cuda: str | None, has_driver: bool, warns: bool) -> None:
    assert ("CUDA 13.0 for nothing" in unused_cuda(cuda, has_driver=has_driver)) is warns


def test_memory_and_disk_are_asked_for_as_much_as_is_needed(tmp_path: Path) -> None:
    assert check_memory(MEMORY_BYTES).is_ready
    assert check_memory(None).is_ready
    assert "1.5 GB" in check_memory(MEMORY_BYTES - 1).fix
    assert check_disk(tmp_path / "not" / "there", 1).is_ready
    assert "PAGED_KV_CACHE_DIR" in check_disk(tmp_path, 2**62).fix


def test_a_disk_with_room_that_cannot_be_written_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    finding = check_disk(tmp_path, 1)
    assert finding.found == f"The model's cache cannot be written in {tmp_path} (Read-only file system)."
    assert "PAGED_KV_CACHE_DIR" in finding.fix


def test_a_port_in_use_is_reported_with_the_next_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        finding = check_port(port)
    assert finding.found == f"Port {port} is taken."
    assert f"--server.port {port + 1}" in finding.fix
    assert check_port(port).is_ready


def test_a_port_that_another_program_listens_on_at_every_address_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert check_port(port).found == f"Port {port} is taken."


def test_an_invalid_port_is_reported() -> None:
    assert [check_port(port).found for port in (0, 70_000)] == ["0 is no port.", "70000 is no port."]


def test_a_port_without_permission_is_not_reported_as_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_socket: object, _address: object) -> None:
        raise PermissionError

    monkeypatch.setattr(socket.socket, "bind", refuse)
    assert check_port(80).found == "Port 80 is not for this user."


def test_this_machine_can_fetch_its_own_page_and_a_proxy_in_between_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert check_own_address().is_ready
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert "NO_PROXY" in check_own_address().fix


def test_a_proxy_that_answers_itself_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"Please log in.")

        def log_message(self, *_args: object) -> None: ...

    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with http.server.HTTPServer(("127.0.0.1", 0), Proxy) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        finding = check_own_address()
        thread.join()
    assert finding.found == "A page on 127.0.0.1 cannot be fetched (something else answered)."


def test_a_missing_browser_is_reported() -> None:
    assert check_browser(lambda: "firefox").is_ready
    assert "Install" in check_browser(lambda: "").fix


ASK_FOR_A_BROWSER = "from tools.doctor.network import check_browser; print(check_browser().is_ready)"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system itself opens a browser")
@pytest.mark.parametrize(("installed", "chosen", "ready"), [
    ((), "", False), ((), "no-such-program", False), (("lynx",), "lynx", False), (("xdg-open",), "", False),
    (("firefox",), "", True), (("my-browser",), "my-browser", True),
])  # fmt: skip
def test_a_browser_must_exist_and_render_images(
    tmp_path: Path, installed: tuple[str, ...], chosen: str, ready: bool
) -> None:
    for name in installed:
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n", "utf-8")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": str(tmp_path), "BROWSER": chosen, "DISPLAY": ":0", "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", ASK_FOR_A_BROWSER]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert answer.stdout == f"{ready}\n"


def test_an_absent_and_a_damaged_model_are_distinguished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGED_KV_CACHE_DIR", str(tmp_path))
    assert check_model().found.startswith("Not on this machine yet")
    folder = tmp_path / "smollm2-135m-instruct-1"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"weights.safetensors": "0" * 64}))
    (folder / "weights.safetensors").write_bytes(b"half")
    assert check_model().found.startswith("Damaged")
    whole = hashlib.sha256(b"half").hexdigest()
    (folder / "manifest.json").write_text(json.dumps({"weights.safetensors": whole}))
    assert check_model().is_ready


def test_the_backend_is_named_with_numbas_threading_layer() -> None:
    finding = check_backend()
    assert finding.is_ready
    assert finding.found.startswith("cpu on cpu: ")
    assert "Numba's threading layer is " in finding.found


@pytest.mark.parametrize(
    "broken", ["engine.model.device.resolve_device", "kernels.backend._load", "numba.threading_layer"]
)
def test_a_backend_that_does_not_start_is_not_ready(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError("libcudart.so.13 is not here")

    monkeypatch.setattr(broken, fail)
    finding = check_backend()
    assert finding.found == "The engine does not start (OSError: libcudart.so.13 is not here)."
    assert "pip install" in finding.fix


def test_a_torch_that_cannot_be_imported_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "The engine does not start (ModuleNotFoundError" in check_backend().found


def writing(monkeypatch: pytest.MonkeyPatch, output: RequestOutput | Exception) -> Finding:
    """What the last check finds when the model's answer is this one."""

    def generate(*_arguments: object) -> list[RequestOutput]:
        if isinstance(output, Exception):
            raise output
        return [output]

    monkeypatch.setattr(engine.Engine, "__init__", lambda *_arguments: None)
    monkeypatch.setattr(engine.Engine, "generate", generate)
    return check_offline()


def answered(text: str) -> RequestOutput:
    return RequestOutput("A", outputs=[SequenceOutput("A", 0, text, (1,), 0.0, "length")], finished=True)


def test_a_model_with_the_right_answer_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writing(monkeypatch, answered(" Paris.")).is_ready


def test_a_request_that_ended_with_an_error_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged compile cache failed every request, and the doctor said that the model wrote ''."""
    error = "The model failed on this request (EOFError), so it has ended."
    finding = writing(monkeypatch, replace(answered(" Paris"), error=error))
    assert finding.found == f"The model does not run: {error}"
    assert "python -m tools.doctor" in finding.fix


@pytest.mark.parametrize("text", ["", "  ", "@@@@"])
def test_a_model_that_writes_nothing_or_nonsense_is_not_ready(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    finding = writing(monkeypatch, answered(text))
    assert finding.found == f"The model wrote {text!r} after 'The capital of France is', not Paris."
    assert not finding.is_ready


@pytest.mark.parametrize(("error", "fix"), [
    (NetworkRefusedError("it asked for 192.0.2.1"), "with the network on"),
    (RuntimeError("no"), "in a terminal"),
])  # fmt: skip
def test_a_model_that_does_not_load_is_not_ready(monkeypatch: pytest.MonkeyPatch, error: Exception, fix: str) -> None:
    finding = writing(monkeypatch, error)
    assert finding.found == f"The model does not run with the network off ({error})."
    assert fix in finding.fix


def bad(name: str) -> Finding:
    return Finding(name, "Bad.", "Mend it.")


def names_of_checks(skip: tuple[str, ...] = ()) -> list[str]:
    return [finding.name for finding in run_checks(begin=str, skip=skip)]


def test_checks_that_depend_on_a_failed_one_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    network = ("Port", "Own address", "Browser")
    monkeypatch.setattr("tools.doctor.model.check_model", lambda: bad("Model"))
    monkeypatch.setattr("tools.doctor.model.check_offline", lambda: bad("Offline"))
    assert names_of_checks(network) == ["Python", "Packages", "Backend", "Model", "Disk", "Memory"]
    monkeypatch.setattr("tools.doctor.model.check_backend", lambda: bad("Backend"))
    assert names_of_checks(network) == ["Python", "Packages", "Backend"]
    monkeypatch.setattr("tools.doctor.system.check_packages", lambda: bad("Packages"))
    assert names_of_checks(network) == ["Python", "Packages"]


def test_a_check_that_is_skipped_hides_none_behind_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.doctor.system.check_packages", lambda: bad("Packages"))
    monkeypatch.setattr("tools.doctor.model.check_model", lambda: bad("Model"))
    monkeypatch.setattr("tools.doctor.model.check_offline", lambda: bad("Offline"))
    assert doctor.main(["--skip", "Packages", "--skip", "Model"]) == 1
    said = capsys.readouterr().out
    assert "NOT    Offline" in said
    assert "Not ready yet: 1 thing to mend." in said


def test_a_verdict_names_skipped_checks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "run_checks", lambda *_arguments: iter([Finding("Python", "Python 3.12.")]))
    assert (doctor.main(["--skip", "Port"]), doctor.main([])) == (0, 0)
    said = capsys.readouterr().out
    assert "Ready, as far as was checked. Left out: Port." in said
    assert "This machine is ready." in said


def test_no_connection_leaves_this_machine_while_the_network_is_off() -> None:
    with no_network(), socket.socket() as stranger:
        with pytest.raises(NetworkRefusedError):
            stranger.connect(("192.0.2.1", 80))
        with pytest.raises(NetworkRefusedError):
            stranger.connect_ex(("192.0.2.1", 80))
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        here.listen()
        with no_network(), socket.socket() as caller:
            caller.connect(here.getsockname())


@pytest.mark.embedded
def test_the_command_prints_every_check_and_the_verdict() -> None:
    embedded_folder(ignore_progress)  # where the model is not on the disk yet, its room there is one check more
    command = [sys.executable, "-m", "tools.doctor", "--json", "--skip", "Port", "--skip", "Browser"]
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


def test_a_refresh_replaces_the_latest_report() -> None:
    made = [ReadinessReport((), "12:00", 0.1), ReadinessReport((), "12:01", 0.1)]
    latest = LatestReport(lambda: made.pop(0))
    latest.refresh()
    assert latest.report is not None and latest.report.clock == "12:00"
    latest.refresh()
    assert latest.report.clock == "12:01"


class CountingLock:
    """A lock that counts who has asked for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.num_asked = 0

    def __enter__(self) -> None:
        self.num_asked += 1
        self.lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self.lock.release()


def test_tabs_that_refresh_at_the_same_time_share_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, runs = threading.Event(), []

    def run() -> ReadinessReport:
        runs.append("run")
        assert gate.wait(PATIENCE)
        return ReadinessReport((), "12:00", 0.1)

    latest, lock = LatestReport(run), CountingLock()
    monkeypatch.setattr(latest, "_lock", lock)
    tabs = [threading.Thread(target=latest.refresh) for _ in range(4)]
    for tab in tabs:
        tab.start()
    until(lambda: lock.num_asked == 4)
    gate.set()
    for tab in tabs:
        tab.join()
    assert runs == ["run"]
    latest.refresh()
    assert len(runs) == 2


DOCTOR_WITH_ONE_BAD_CHECK = """
import sys, time
from tools.doctor import __main__, system
def check_packages():
    {statement}
system.check_packages = check_packages
sys.exit(__main__.main(["--json", "--skip", "Port"]))
"""


def doctor_that(statement: str) -> tuple[str, ...]:
    """The real one, with one check that does this instead."""
    return sys.executable, "-c", DOCTOR_WITH_ONE_BAD_CHECK.format(statement=statement)


@pytest.mark.slow
def test_a_check_that_does_not_answer_is_named_with_the_limit_and_what_to_do() -> None:
    report = run_doctor(doctor_that("time.sleep(600)"), timeout=8)
    assert [finding.name for finding in report.findings] == ["Python", "Packages"]
    assert [finding.is_ready for finding in report.findings] == [True, False]
    stuck = report.problems[0]
    assert stuck.found == "No answer after 8 s, the limit for all checks together. The checks after it were not run."
    assert stuck.fix.startswith("Press the button again")


def test_a_doctor_that_crashes_does_not_call_the_machine_ready() -> None:
    report = run_doctor(doctor_that("raise OSError"))
    assert [finding.name for finding in report.problems] == ["Packages"]
    assert report.problems[0].found == "The process that runs the checks ended during this one."


def test_a_doctor_without_output_does_not_call_the_machine_ready() -> None:
    report = run_doctor((sys.executable, "-c", ""))
    assert [finding.name for finding in report.problems] == ["The doctor"]
    assert report.problems[0].found == "The process that runs the checks ended during this one."
