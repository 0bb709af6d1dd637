"""Keyset pagination: a cursor encodes the position after the last row of a page and is opaque to clients."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Final

from adjudge.domain.errors import InvalidInput

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
_MAX_CURSOR_CHARS: Final = 2_048

Scalar = str | int | float | None


def encode_cursor(values: Sequence[Scalar]) -> str:
    """Encode the position after the row with these values."""
    return base64.urlsafe_b64encode(json.dumps(list(values), separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, kinds: Sequence[type]) -> list[Scalar] | None:
    """The values in a cursor; None for the first page. An invalid cursor is rejected."""
    if cursor is None:
        return None
    try:
        if len(cursor) > _MAX_CURSOR_CHARS:
            raise ValueError
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if len(values) != len(kinds) or not all(
            isinstance(value, kind) for value, kind in zip(values, kinds, strict=True)
        ):
            raise ValueError
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise InvalidInput("cursor: invalid; use the 'next' value of the same list.", field="cursor") from None
    return list(values)
