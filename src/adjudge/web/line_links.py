"""Which lines of a program a message names: compilers and interpreters say them in a few ways."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

_LINE = r"(?:: ?|\(|\"?,? (?:on )?line |: line )([1-9]\d{0,5})(?!\d)"
"""``main.cpp:3:5``, ``main.ts(3,5)``, ``File "main.py", line 3``, ``at main.pl line 3``, ``main.sh: line 3``."""
_LONGEST = 100_000
_NAME_LONGEST = 255
_MOST = 200
"""Nobody follows more of them, and a program can have thousands said of it to keep the server busy."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Text as it was written, and the line that it names."""

    text: str
    line: int | None = None


def link_lines(message: str, file_name: str) -> list[TextSegment]:
    """A message cut where it names a line of the program, whose file is called ``file_name``; without one, uncut.

    Everything else, lines of libraries and of the jury's files among it, stays text.
    """
    return list(_pieces(message, file_name))


def _pieces(message: str, file_name: str) -> Iterator[TextSegment]:
    done = 0
    if file_name and len(file_name) <= _NAME_LONGEST:
        for found in islice(_named(file_name).finditer(message, 0, _LONGEST), _MOST):
            if found.start() > done:
                yield TextSegment(message[done : found.start()])
            yield TextSegment(found[0], int(found[1]))
            done = found.end()
    if done < len(message):
        yield TextSegment(message[done:])


@lru_cache(maxsize=64)
def _named(file_name: str) -> re.Pattern[str]:
    # Where programs stand in the sandbox, or no folder at all: a library's folder is none of them.
    return re.compile(rf"(?<![\w./-])(?:/app/|\./)?{re.escape(file_name)}{_LINE}")
