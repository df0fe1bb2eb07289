"""The presenter's token and the join code that follows from it.

The code is a slow hash of the token, so whoever holds the token can open the room again under the same code, on a
server that was started anew and knows nothing. Nobody can go the other way: 40 bits, some 50 ms a guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's 32 characters: none is mistaken for another when read out or copied from a projector."""
LENGTH = 8
_LOOKALIKES = str.maketrans({"O": "0", "I": "1", "L": "1"})
_ONE_AT_A_TIME = threading.Lock()
"""The hash takes 16 MB: strangers who send tokens wait for each other."""


def new_token() -> str:
    """A random presenter's token, safe in an address."""
    return secrets.token_urlsafe(24)


def new_member_id() -> str:
    """A random id of a member, which only their tab knows."""
    return secrets.token_urlsafe(16)


def code_of(token: str) -> str:
    """The join code of this token's room."""
    with _ONE_AT_A_TIME:
        digest = hashlib.scrypt(token.encode("utf-8"), salt=b"join code", n=2**14, r=8, p=1, dklen=LENGTH * 5 // 8)
    number = int.from_bytes(digest)
    return "".join(ALPHABET[number >> shift & 31] for shift in range(LENGTH * 5 - 5, -1, -5))


def code_from(typed: str) -> str:
    """What somebody typed, as a code: lower case, blanks and dashes are welcome."""
    return "".join(c for c in typed.upper().translate(_LOOKALIKES) if c in ALPHABET)[: LENGTH + 1]


def shown(code: str) -> str:
    """In two halves, to be read out."""
    return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"


def is_same(one: str, other: str) -> bool:
    """Compared in a time that tells nothing about where they differ."""
    return hmac.compare_digest(one.encode("utf-8"), other.encode("utf-8"))
