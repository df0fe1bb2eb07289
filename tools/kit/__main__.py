"""Make a folder for a memory stick, from which the app is installed without a network.

python -m tools.kit FOLDER
python -m tools.kit FOLDER --cpu    for Linux without a GPU: without the libraries of CUDA, several GB
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.model.load_report import ModelLoadError, Progress
from tools.kit.make import ROOT, KitError, make_kit


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 when the kit could not be made."""
    parser = argparse.ArgumentParser(prog="python -m tools.kit", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    parser.add_argument("--cpu", action="store_true", help="the packages of requirements-cpu.txt")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    stages: set[str] = set()

    def tell(progress: Progress) -> None:
        if progress.sentence not in stages:
            stages.add(progress.sentence)
            print(progress.sentence, flush=True)

    try:
        make_kit(folder, tell, ROOT / ("requirements-cpu.txt" if options.cpu else "requirements.txt"))
    except (KitError, ModelLoadError) as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"\nThe kit is in {folder} ({size / 1e6:.0f} MB). On the other machine: python install.py")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
