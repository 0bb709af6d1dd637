"""Finds line references to submitted files in messages of compilers and interpreters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

_LINE = r"(?:: ?|\(|\"?,? (?:on )?line |: line )([1-9]\d{0,5})(?!\d)"
"""``main.cpp:3:5``, ``main.ts(3,5)``, ``File "main.py", line 3``, ``at main.pl line 3``, ``main.sh: line 3``."""
_LONGEST = 100_000
_NAME_LONGEST = 255
_MOST = 200
"""Limits the work for messages with thousands of references."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A piece of text, and the line it refers to."""

    text: str
    line: int | None = None
    file: int = 0
    """The index of the file of the line."""


def link_lines(message: str, file_names: Sequence[str]) -> list[TextSegment]:
    """Split a message at references to lines of the submitted files; without file names, one segment.

    References to other files (libraries, jury files) stay text.
    """
    return list(_pieces(message, tuple(file_names)))


def _pieces(message: str, file_names: tuple[str, ...]) -> Iterator[TextSegment]:
    done = 0
    if any(file_names):
        for found in islice(_named(file_names).finditer(message, 0, _LONGEST), _MOST):
            if found.start() > done:
                yield TextSegment(message[done : found.start()])
            yield TextSegment(found[0], int(found[2]), file_names.index(found[1]))
            done = found.end()
    if done < len(message):
        yield TextSegment(message[done:])


@lru_cache(maxsize=64)
def _named(file_names: tuple[str, ...]) -> re.Pattern[str]:
    # The folder of sources in the sandbox, or no folder; other folders belong to libraries.
    usable = sorted((name for name in file_names if 0 < len(name) <= _NAME_LONGEST), key=len, reverse=True)
    names = "|".join(re.escape(name) for name in usable) or r"(?!)"
    return re.compile(rf"(?<![\w./-])(?:/app/|\./)?({names}){_LINE}")
