"""Globs of the ICPC format: ``*`` within one path component, ``{a,b}``; a match of a parent folder counts, too."""

from __future__ import annotations

import re
from functools import lru_cache

from adjudge.domain.errors import InvalidInput

MAX_LENGTH = 512
MAX_STARS = 8


@lru_cache(maxsize=1024)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Convert a glob to a regular expression; braces become alternatives, so nothing is multiplied out."""
    if len(pattern) > MAX_LENGTH or pattern.count("*") > MAX_STARS or "**" in pattern:
        raise InvalidInput(f"{pattern[:60]!r}: a pattern has at most {MAX_STARS} stars, and never two together.")
    parts: list[str] = []
    depth = 0
    for character in pattern:
        if character == "*":
            parts.append("[^/]*")
        elif character == "{":
            depth += 1
            parts.append("(?:")
        elif character == "}" and depth:
            depth -= 1
            parts.append(")")
        elif character == "," and depth:
            parts.append("|")
        else:
            parts.append(re.escape(character))
    if depth:
        raise InvalidInput(f"{pattern[:60]!r}: a brace is never closed.")
    return re.compile("".join(parts))


def matches(pattern: str, path: str) -> bool:
    """Whether a glob matches the path or one of its parent folders; the empty glob matches everything."""
    if not pattern:
        return True
    expression = compile_glob(pattern)
    steps = path.split("/")
    return any(expression.fullmatch("/".join(steps[:depth])) for depth in range(1, len(steps) + 1))
