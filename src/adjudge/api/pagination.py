"""Pages by key: a cursor is where the last page ended, opaque to whoever carries it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Final

from adjudge.domain.errors import InvalidInput

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
_LONGEST: Final = 2_048

Scalar = str | int | float | None


def encode_cursor(values: Sequence[Scalar]) -> str:
    """Name the place after the row that has these values."""
    return base64.urlsafe_b64encode(json.dumps(list(values), separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, kinds: Sequence[type]) -> list[Scalar] | None:
    """The values that a cursor holds; None at the beginning. One that we did not make is refused."""
    if cursor is None:
        return None
    try:
        if len(cursor) > _LONGEST:
            raise ValueError
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if len(values) != len(kinds) or not all(
            isinstance(value, kind) for value, kind in zip(values, kinds, strict=True)
        ):
            raise ValueError
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise InvalidInput("cursor: invalid; use the 'next' value of the same list.", field="cursor") from None
    return list(values)
