"""Finds line references to the submitted source in messages of compilers and interpreters."""

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
"""Limits the work for messages with thousands of references."""


@dataclass(frozen=True, slots=True)
class TextSegment:
    """A piece of text, and the line it refers to."""

    text: str
    line: int | None = None


def link_lines(message: str, file_name: str) -> list[TextSegment]:
    """Split a message at references to lines of ``file_name``; without a file name, one segment.

    References to other files (libraries, jury files) stay text.
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
    # The folder of sources in the sandbox, or no folder; other folders belong to libraries.
    return re.compile(rf"(?<![\w./-])(?:/app/|\./)?{re.escape(file_name)}{_LINE}")
