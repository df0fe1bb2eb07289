"""The words that the memory map's own script says: `said("Play")`."""

from __future__ import annotations

import json
import re

_SAID = re.compile(r'\bsaid\(("(?:[^"\\]|\\.)*")')


def words_of_script(script: str) -> list[str]:
    """In the order of the text."""
    return [json.loads(literal) for literal in _SAID.findall(script)]
