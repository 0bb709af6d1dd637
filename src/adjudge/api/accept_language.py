"""The languages that a request prefers: the query parameter ``lang``, else the header ``Accept-Language``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LANGUAGE: Final = re.compile(r"[a-zA-Z]{2,3}")
_HEADER_CHARACTERS: Final = 200
_STATEMENT_LANGUAGES: Final = 3


def statement_languages(lang: str, accept_language: str) -> tuple[str, ...]:
    """Languages for the statement: ``lang``, else the first few of the header, as they are part of cache keys."""
    if lang:
        return (lang.lower(),) if _LANGUAGE.fullmatch(lang) else ()
    return preferred_languages(accept_language[:_HEADER_CHARACTERS])[:_STATEMENT_LANGUAGES]


@lru_cache(maxsize=1024)
def preferred_languages(accept_language: str) -> tuple[str, ...]:
    """The primary language codes of an ``Accept-Language`` header, preferred first; invalid items are skipped."""
    weighted = []
    for position, item in enumerate(accept_language[:_HEADER_CHARACTERS].split(",")):
        tag, _, parameter = item.partition(";")
        code = tag.strip().partition("-")[0]
        try:
            weight = float(parameter.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if weight > 0 and _LANGUAGE.fullmatch(code):
            weighted.append((-weight, position, code.lower()))
    return tuple(dict.fromkeys(code for _, _, code in sorted(weighted)))
