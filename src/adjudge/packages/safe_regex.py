"""Regular expressions from packages: rejected if matching could take long.

Python's engine backtracks, so an untrusted pattern can take exponential time. Patterns over file names need little:
nested repetition is rejected, and the cost of the rest is bounded in advance.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from adjudge.domain.errors import InvalidInput

MAX_LENGTH = 300
MAX_STEPS = 50_000_000
_ESCAPES = re.compile(r"\\.", re.DOTALL)
_CLASSES = re.compile(r"\[[^\]]*\]")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_REPEATS = re.compile(r"[*+{]")
_OPTIONAL = re.compile(r"\)\?|[^*+?}(]\?|\|")
_FORBIDDEN = re.compile(r"\(\?(?!P<|:)|\(\?P=|\\[0-9]")


def compile_safe_regex(text: str, names: Sequence[str]) -> re.Pattern[str]:
    """Compile a pattern to be matched against ``names``, or raise ValueError."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"A pattern has at most {MAX_LENGTH} characters.")
    bare = _CLASSES.sub("x", _ESCAPES.sub("x", text))
    if _REPEATED_GROUP.search(bare) or _FORBIDDEN.search(text):
        raise InvalidInput(f"{text[:60]!r}: nested repetition, lookaround and back-references are not supported.")
    power = len(_REPEATS.findall(bare)) + 1
    branches = 2 ** min(30, len(_OPTIONAL.findall(bare)))
    if sum(min(len(name), 10_000) ** power for name in names) * branches > MAX_STEPS:
        raise InvalidInput(f"{text[:60]!r} would take too long on {len(names)} file names; write a simpler one.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a pattern whose meaning will change in a later Python version is rejected
            return re.compile(text, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise InvalidInput(f"{text[:60]!r} is not a regular expression: {error}.") from error
