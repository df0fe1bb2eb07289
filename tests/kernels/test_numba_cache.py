"""What was compiled from other sources is compiled anew, whichever file the change was in."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

pytest.importorskip("numba")
from kernels.numba_cache import HERE, digest_of

NORMALISE = """
import torch
from kernels.rms_norm.cpu import normalise_rows, rms_norm
print(rms_norm(torch.full((1, 4), 2.0), torch.ones(4), 0.0)[0, 0].item(), sum(normalise_rows.stats.cache_hits.values()))
"""


def run_in(project: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(project)}
    environment.pop("NUMBA_CACHE_DIR", None)
    program = [sys.executable, "-c", NORMALISE]
    done = subprocess.run(program, cwd=project, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_change_in_a_file_that_others_inline_is_noticed(tmp_path: Path) -> None:
    copytree(HERE, tmp_path / "kernels", ignore=ignore_patterns("__pycache__"))
    assert [run_in(tmp_path), run_in(tmp_path)] == ["1.0 0", "1.0 1"]
    inlined = tmp_path / "kernels" / "numba_math.py"
    widen = "return types.float32(types.float32), lambda _context, _builder, _signature, arguments: arguments[0]"
    source = inlined.read_text("utf-8")
    assert widen in source
    doubled = widen.replace("_builder", "builder").replace("arguments[0]", "builder.fadd(arguments[0], arguments[0])")
    inlined.write_text(source.replace(widen, doubled), "utf-8")
    assert run_in(tmp_path) == "2.0 0", "the row's length is divided out, but the weight counts double now"


def test_a_digest_sees_names_and_contents_of_what_numba_compiles(tmp_path: Path) -> None:
    (tmp_path / "cpu.py").write_text("a = 1", "utf-8")
    first = digest_of(tmp_path)
    (tmp_path / "reference.py").write_text("b = 1", "utf-8")
    assert digest_of(tmp_path) == first
    (tmp_path / "cpu.py").write_text("a = 2", "utf-8")
    assert digest_of(tmp_path) != first
    (tmp_path / "cpu.py").rename(tmp_path / "cpu_loops.py")
    (tmp_path / "cpu_loops.py").write_text("a = 1", "utf-8")
    assert digest_of(tmp_path) != first
