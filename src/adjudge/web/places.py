"""Which lines of a program a message names: compilers and interpreters say them in a few ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

_LINE = r"(?:: ?|\(|\"?,? (?:on )?line |: line )([1-9]\d{0,5})(?!\d)"
"""``main.cpp:3:5``, ``main.ts(3,5)``, ``File "main.py", line 3``, ``at main.pl line 3``, ``main.sh: line 3``."""
_LONGEST = 100_000
_MOST = 200
"""Nobody follows more of them, and a program can have thousands said of it to keep the server busy."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text as it was written, and the line that it names."""

    text: str
    line: int | None = None


def pieces(message: str, file_name: str) -> list[Piece]:
    """A message cut where it names a line of the program, whose file is called like ``file_name`` or ends as it does.

    Everything else, lines of libraries among it, stays text.
    """
    return list(_pieces(message, PurePosixPath(file_name).suffix))


def _pieces(message: str, suffix: str) -> Iterator[Piece]:
    done = 0
    for found in islice(_named(suffix).finditer(message, 0, _LONGEST), _MOST) if suffix else ():
        if found.start() > done:
            yield Piece(message[done : found.start()])
        yield Piece(found[0], int(found[1]))
        done = found.end()
    if done < len(message):
        yield Piece(message[done:])


@lru_cache(maxsize=64)
def _named(suffix: str) -> re.Pattern[str]:
    # Where programs stand in the sandbox, or no folder at all: a library's folder is none of them. Names are bounded,
    # so that a message made of one long word is read in a time that grows with its length alone.
    return re.compile(rf"(?<![\w./-])(?:/app/|\./)?[A-Za-z_]\w{{0,63}}{re.escape(suffix)}{_LINE}")
