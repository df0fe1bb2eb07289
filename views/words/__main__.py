"""The words of the lessons, for translators.

python -m views.words --write                   gather the English catalogue anew: assets/words/en.json
python -m views.words --check assets/words/de.json   what a translation lacks, and what is wrong with it
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence

from views.words.catalogue import WORDS, CatalogueError, catalogue_text, read_catalogue
from views.words.gather import gather
from views.words.language import faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 when a translation has faults or lacks words."""
    options = _options(arguments)
    if options.check is None:
        WORDS.joinpath("en.json").write_text(catalogue_text(gather()), "utf-8")
        return 0
    try:
        found = list(report(read_catalogue(options.check).words))
    except CatalogueError as error:
        found = [str(error)]
    print("\n".join(found) or "Complete.")
    return 1 if found else 0


def report(words: Mapping[str, str]) -> Iterator[str]:
    """One line a fault, a missing text, and a text that no page has any more."""
    english = gather()
    yield from faults(words).values()
    yield from (f"Missing: {text!r}" for text in english if not words.get(text))
    yield from (f"No longer used: {text!r}" for text in words if text not in english)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m views.words", description="The words of the lessons.")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--write", action="store_true", help="gather the English catalogue from the source")
    chosen.add_argument("--check", metavar="FILE", help="hold a translation against the English catalogue")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
