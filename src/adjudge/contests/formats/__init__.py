"""Scoring formats: one module each, behind the interface of ``adjudge.contests.formats.base``."""

from __future__ import annotations

from typing import Any, Final

from adjudge.contests.formats import atcoder, best, homework, icpc, ioi, last
from adjudge.contests.formats.base import ScoringFormat
from adjudge.domain.errors import InvalidInput

_ALL: Final[tuple[ScoringFormat[Any], ...]] = (
    icpc.FORMAT,
    ioi.FORMAT,
    best.FORMAT,
    last.FORMAT,
    atcoder.FORMAT,
    homework.FORMAT,
)
FORMATS: Final = {item.name: item for item in _ALL}


def get_format(name: str) -> ScoringFormat[Any]:
    """Return a scoring format by name; raises InvalidInput if there is none."""
    if name not in FORMATS:
        raise InvalidInput(f"format: {name[:64]!r} is unknown; choose one of {', '.join(FORMATS)}.", field="format")
    return FORMATS[name]
