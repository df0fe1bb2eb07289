"""The embedded model's weights in parts small enough to carry to a machine without a network, and whole again there.

Usage: python -m benchmarks.gpu_day.weights FOLDER [--part-mib 52]

Writes `weights.json` and two or more parts into FOLDER, out of the cached weights (fetched first where they are not
there). Carried together or one after another, they go into one folder for `python -m benchmarks.gpu_day --weights`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from pathlib import Path

from engine.model.weights.cache import CACHE_VARIABLE, is_intact, sha256_of
from engine.model.weights.embedded import CACHE_NAME

INDEX = "weights.json"
PART_MIB = 52
"""The weights are 97 MB: two halves, each of which travels with the repository in less than 64 MiB."""


class WeightsError(ValueError):
    """Parts that are missing or damaged. The message names the part."""


def split(cached: Path, folder: Path, part_bytes: int) -> list[Path]:
    """Pack the folder `cached` and cut it into parts of at most `part_bytes`; returns the files, the index first."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = Path(scratch, "whole.tar")
        with tarfile.open(whole, "w") as archive:
            archive.add(cached, cached.name)
        parts: list[Path] = []
        with whole.open("rb") as stream:
            while piece := stream.read(part_bytes):
                parts.append(folder / f"weights.part{len(parts) + 1}")
                parts[-1].write_bytes(piece)
        index = {"whole": sha256_of(whole), "parts": {part.name: sha256_of(part) for part in parts}}
    (folder / INDEX).write_text(json.dumps(index, indent=1), "utf-8")
    return [folder / INDEX, *parts]


def join(folder: Path) -> str:
    """Put the parts in `folder` together in a cache folder there, and make this process use it; returns a sentence.

    Raises WeightsError when a part is missing, or is not what it was when it was cut.
    """
    root = folder / "cache"
    if not is_intact(root / CACHE_NAME):
        _unpack(folder, root)
    os.environ[CACHE_VARIABLE] = str(root.resolve())
    return f"The weights are whole in {root / CACHE_NAME}."


def _unpack(folder: Path, root: Path) -> None:
    try:
        index = json.loads((folder / INDEX).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{folder} has no readable {INDEX}: carry it with the parts.") from error
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = Path(scratch, "whole.tar")
        digest = hashlib.sha256()
        with whole.open("wb") as stream:
            for name, expected in index["parts"].items():
                part = folder / Path(name).name
                if not part.is_file():
                    raise WeightsError(
                        f"{part.name} is not in {folder}: all of {', '.join(index['parts'])} are needed."
                    )
                if sha256_of(part) != expected:
                    raise WeightsError(f"{part.name} is damaged: its sha256 is not the one in {INDEX}. Carry it again.")
                piece = part.read_bytes()
                digest.update(piece)
                stream.write(piece)
        if digest.hexdigest() != index["whole"]:
            raise WeightsError(f"The parts do not make the whole that {INDEX} tells: they are of different cuts.")
        shutil.rmtree(root, ignore_errors=True)
        with tarfile.open(whole) as archive:
            archive.extractall(root, filter="data")
    if not is_intact(root / CACHE_NAME):
        raise WeightsError(f"What was packed is not {CACHE_NAME}, whole: make the parts again.")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_day.weights", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part-mib", type=int, default=PART_MIB)
    options = parser.parse_args()
    from engine.model.load_report import ignore_progress
    from engine.model.weights.embedded import embedded_folder

    for file in split(embedded_folder(ignore_progress), options.folder, options.part_mib << 20):
        print(f"{file.name}: {file.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
