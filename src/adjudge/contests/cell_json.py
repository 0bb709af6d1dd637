"""Cells as canonical JSON: equal cells are equal bytes, so that a change of a view is a change of its text."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from functools import lru_cache
from typing import Final

from adjudge.contests.formats.base import Cell

_DEFAULTS: Final = asdict(Cell())
EMPTY_CELL: Final = "{}"
"""The text of a cell without submissions."""


def encode_cell(cell: Cell) -> str:
    """The fields that differ from those of an empty cell, sorted by name."""
    found = {item.name: getattr(cell, item.name) for item in fields(cell)}
    return json.dumps(
        {
            name: dict(value) if name == "subtasks" else value
            for name, value in found.items()
            if value != _DEFAULTS[name]
        },
        sort_keys=True,
        separators=(",", ":"),
    )


@lru_cache(maxsize=65_536)
def decode_cell(text: str) -> Cell:
    """The cell of a text."""
    return Cell(**json.loads(text))
