"""How the tokens of a large product are cut, so that threads with equally many pieces have equally much to do."""

# Numba takes the types of what it compiles from the arguments of the first call.
# mypy: disable-error-code="no-untyped-def"

import numba

BLOCK = 16
"""Tokens that are multiplied together: a panel is a multiple of it."""


@numba.njit(inline="always")
def even_panels(num_tokens, most_tokens):
    """How many panels, and how many tokens each but the last has: about `most_tokens` at most, and as many in each."""
    panels = max(1, (num_tokens + most_tokens - 1) // max(1, most_tokens))
    blocks = (num_tokens + panels * BLOCK - 1) // (panels * BLOCK)
    return (num_tokens + blocks * BLOCK - 1) // (blocks * BLOCK) if blocks > 0 else 0, blocks * BLOCK
