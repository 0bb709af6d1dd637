"""Numbers as the reference checkers parse them, and tolerances."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

_SPEC_FLOAT = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SCANF_FLOAT = re.compile(rb"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE](?:([+-]?[0-9]+)|[+-]?))?")
_SCANF_HEX = re.compile(rb"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?")
_INTEGER = re.compile(rb"0|-?[1-9][0-9]*")
_LONGEST_NUMBER = 4_096
_INT64 = 2**63
_TESTLIB_SLACK = 1e-15


def spec_float(token: bytes) -> float | None:
    """The grammar of the 2025-09 package format: decimal, no hex, no infinities."""
    if len(token) > _LONGEST_NUMBER or not _SPEC_FLOAT.fullmatch(token):
        return None
    return float(token)


def scanf_float(token: bytes) -> float | None:
    """What ``sscanf("%lf")`` parses completely and is finite; includes hexadecimal numbers and truncated exponents."""
    if len(token) > _LONGEST_NUMBER:
        return None
    if match := _SCANF_FLOAT.fullmatch(token):
        value = float(match[1] + (b"e" + match[2] if match[2] else b""))
    elif _SCANF_HEX.fullmatch(token):
        try:
            value = float.fromhex(token.decode())
        except OverflowError:
            return None
    else:
        return None
    return value if math.isfinite(value) else None


def testlib_float(token: bytes) -> float | None:
    """A decimal number; values out of range are allowed."""
    match = _SCANF_FLOAT.fullmatch(token) if len(token) <= _LONGEST_NUMBER else None
    return float(match[1] + (b"e" + match[2] if match[2] else b"")) if match else None


def python_float(token: bytes) -> float | None:
    """What Python's ``float`` parses, including underscores, ``inf`` and ``nan``."""
    try:
        return float(token) if len(token) <= _LONGEST_NUMBER else None
    except ValueError:
        return None


def strict_integer(token: bytes, bound: int | None = _INT64) -> int | None:
    """An integer in canonical form: no plus, no leading zeros, no ``-0``; within ``bound`` if given."""
    if len(token) > _LONGEST_NUMBER or not _INTEGER.fullmatch(token):
        return None
    value = int(token)
    return value if bound is None or -bound <= value < bound else None


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed absolute and relative error; ``None`` disables a kind."""

    absolute: float | None = None
    relative: float | None = None

    def __call__(self, wanted: float, found: float) -> bool:
        """Whether ``found`` is close to ``wanted`` by an allowed kind of error; NaN is close to nothing."""
        distance = abs(wanted - found)
        return (self.absolute is not None and distance <= self.absolute) or (
            self.relative is not None and distance <= self.relative * abs(wanted)
        )


def testlib_close(epsilon: float) -> Callable[[float, float], bool]:
    """As testlib's ``doubleCompare``."""
    slack = epsilon + _TESTLIB_SLACK

    def close(wanted: float, found: float) -> bool:
        if math.isinf(wanted) or math.isinf(found):
            return wanted == found
        if abs(found - wanted) <= slack:
            return True
        bounds = sorted((wanted * (1 - slack), wanted * (1 + slack)))
        return bounds[0] <= found <= bounds[1]

    return close


def dmoj_close(epsilon: float, mode: str) -> Callable[[float, float], bool]:
    """DMOJ's three error modes."""

    def absolute(wanted: float, found: float) -> bool:
        return abs(found - wanted) <= epsilon

    def relative(wanted: float, found: float) -> bool:
        bounds = wanted * (1 - epsilon), wanted * (1 + epsilon)
        return min(bounds) <= found <= max(bounds)

    def either(wanted: float, found: float) -> bool:
        return absolute(wanted, found) or (abs(wanted) >= epsilon and abs(1 - found / wanted) <= epsilon)

    return {"absolute": absolute, "relative": relative}.get(mode, either)
