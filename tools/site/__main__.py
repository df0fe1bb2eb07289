"""Write the lessons' pictures with their words as HTML files that play without any server.

python -m tools.site FOLDER                                     index.html and a page a lesson
python -m tools.site FOLDER --live https://course.example/kv/   with links to where the app runs
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.site.make import make_site
from views.server.model_registry import MODEL_VARIABLE


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files and print their names and sizes. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("folder", type=Path, help="made when it is not there; pages in it are replaced")
    parser.add_argument("--live", default="", metavar="ADDRESS", help="where the app runs, for links to it")
    options = parser.parse_args(arguments)
    if options.live and not options.live.startswith(("http://", "https://")):
        parser.error("--live takes an address that begins with http:// or https://")
    os.environ[MODEL_VARIABLE] = "tiny-random"  # no lesson computes with a model, and the first page would load one
    for file in make_site(options.folder, options.live):
        print(f"{file.stat().st_size / 1000:6.0f} kB  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
