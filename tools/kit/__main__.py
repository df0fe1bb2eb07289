"""python -m tools.kit FOLDER: make a folder for a memory stick, from which the app is installed without a network."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.model.load_report import ModelLoadError, Progress
from tools.kit.make import KitError, make_kit


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 when the kit could not be made."""
    parser = argparse.ArgumentParser(prog="python -m tools.kit", description=__doc__)
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    folder: Path = parser.parse_args(arguments).folder
    stages: set[str] = set()

    def tell(progress: Progress) -> None:
        if progress.sentence not in stages:
            stages.add(progress.sentence)
            print(progress.sentence, flush=True)

    try:
        make_kit(folder, tell)
    except (KitError, ModelLoadError) as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"\nThe kit is in {folder} ({size / 1e6:.0f} MB). On the other machine: python install.py")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
