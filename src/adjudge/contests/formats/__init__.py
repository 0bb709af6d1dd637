"""Scoring formats: one module each, behind the interface of ``adjudge.contests.formats.base``."""

from __future__ import annotations

from typing import Any, Final

from adjudge.contests.formats import icpc
from adjudge.contests.formats.base import ScoringFormat
from adjudge.domain.errors import InvalidInput

FORMATS: Final[dict[str, ScoringFormat[Any]]] = {item.name: item for item in (icpc.FORMAT,)}


def get_format(name: str) -> ScoringFormat[Any]:
    """Return a scoring format by name; raises InvalidInput if there is none."""
    if name not in FORMATS:
        raise InvalidInput(f"format: {name[:64]!r} is unknown; choose one of {', '.join(FORMATS)}.", field="format")
    return FORMATS[name]
