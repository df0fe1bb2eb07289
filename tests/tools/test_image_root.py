"""The Dockerfile: what its targets are, what they hold, and, where it is asked for, its steps run in a fresh root."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tests.helpers.app_server import ROOT
from tests.helpers.nginx import KEEP_HOST, UPGRADE
from tools.image_root.__main__ import main
from tools.image_root.dockerfile import DockerfileError, context_files, filled, needed_stages, pairs, read_stages

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
SMALL = """# a comment
FROM debian:bookworm-slim AS base
ENV A=1 B="two words"
RUN one \\
    # between the lines
    && two
FROM base AS packages
FROM base AS app
COPY --from=packages /x /x
"""


def test_stages_instructions_and_what_a_target_needs() -> None:
    base, packages, app = read_stages(SMALL)
    assert [(each.keyword, each.value, each.line) for each in base.instructions] == [
        ("ENV", 'A=1 B="two words"', 3),
        ("RUN", "one      && two", 4),
    ]
    assert [stage.name for stage in needed_stages([base, packages, app], "packages")] == ["base", "packages"]
    assert [stage.name for stage in needed_stages([base, packages, app], "app")] == ["base", "packages", "app"]
    assert pairs('A=1 B="two words" C') == {"A": "1", "B": "two words"}
    assert filled("${A}/$B/$C", {"A": "1", "B": "2"}) == "1/2/"
    with pytest.raises(DockerfileError, match="line 2: VOLUME is not known here"):
        read_stages("FROM x AS y\nVOLUME /z")


def test_the_context_is_what_dockerignore_leaves(tmp_path: Path) -> None:
    for name in ("app.py", "a/__pycache__/x.pyc", "a/b.py", "tests/t.py", "results/keep.json", "results/other.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    ignore = "# comment\ntests\n**/__pycache__\nresults/*\n!results/keep.json\n"
    assert list(context_files(tmp_path, ignore)) == [
        PurePosixPath(name) for name in ("a/b.py", "app.py", "results/keep.json")
    ]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_target_runs_the_server_as_a_user_without_rights_and_has_a_health_check(target: str) -> None:
    steps = [each for stage in needed_stages(read_stages(DOCKERFILE), target) for each in stage.instructions]
    last = {each.keyword: each.value for each in steps}
    assert last["USER"] == "1000"
    assert json.loads(last["CMD"])[:3] == ["streamlit", "run", "app.py"]
    assert "/_stcore/health" in last["HEALTHCHECK"] and last["EXPOSE"] == "8501"


def test_the_default_target_has_the_packages_without_cuda() -> None:
    stages = read_stages(DOCKERFILE)
    assert stages[-1].name == "cpu"
    copied = [each.value for stage in needed_stages(stages, "cpu") for each in stage.instructions]
    assert "requirements-cpu.txt ./" in copied and "requirements.txt ./" not in copied


def test_all_that_the_app_imports_is_in_the_image_and_no_test_is() -> None:
    roots = {path.parts[0] for path in context_files(ROOT, (ROOT / ".dockerignore").read_text("utf-8"))}
    assert {"app.py", "pages", "views", "course", "engine", "kernels", "benchmarks", "assets", ".streamlit"} <= roots
    assert roots.isdisjoint({".git", "tests", "tls"})


def test_hadolint_has_nothing_to_say() -> None:
    """Every rule that is ignored is named in the Dockerfile, where it is."""
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if hadolint is None:
        reason = "No hadolint here: pip install -r requirements-dev.txt."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    run = subprocess.run(
        [hadolint, "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert run.stdout == ""
    assert run.returncode == 0


@pytest.mark.parametrize("file", ["nginx.conf", "deploying.md"])
def test_the_proxies_in_the_docs_are_set_up_as_the_tested_one(file: str) -> None:
    text = (ROOT / "docs" / file).read_text("utf-8")
    [block] = re.findall(r"location \S+ \{\n(.*?)\n    \}", text, re.DOTALL)
    directives = {line.strip() for line in block.splitlines()}
    assert {*UPGRADE, *KEEP_HOST, "client_max_body_size 64m;"} <= directives
    assert "map $http_upgrade $connection_upgrade { default upgrade; '' close; }" in text


@pytest.mark.slow
def test_the_steps_run_as_they_are_written_and_the_server_comes_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Twenty minutes, root rights and a mirror of Debian: CONTRIBUTING.md has the command."""
    arguments = os.environ.get("IMAGE_ROOT_ARGUMENTS")
    if arguments is None:
        pytest.skip("set IMAGE_ROOT_ARGUMENTS to what `python -m tools.image_root FOLDER` takes here")
    assert main([str(tmp_path), *arguments.split()]) == 0
    printed = capfd.readouterr().out
    [size] = re.findall(r"^ *(\d+) MB  .*, by du$", printed, re.MULTILINE)
    assert int(size) < 1500
    assert "as user 1000" in printed
    packages = next((tmp_path / "cpu" / "opt" / "venv" / "lib").glob("python3*/site-packages"))
    assert [each.name for each in packages.iterdir() if re.match("nvidia|triton|cuda", each.name)] == []
