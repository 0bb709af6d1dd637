"""Problem metadata: slugs, tags, titles, search words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import is_id

SLUG_PATTERN: Final = r"[a-z0-9][a-z0-9_-]{0,63}"
MAX_TAGS: Final = 32
MAX_TITLE: Final = 200
MAX_DIFFICULTY: Final = 10_000.0
MAX_SEARCH_WORDS: Final = 8
_SLUG: Final = re.compile(SLUG_PATTERN)
_TAG: Final = re.compile(r"[^\W_](?:[\w .+#-]{0,38}[\w.+#])?")
_WORD: Final = re.compile(r"\w+")
_LONGEST_WORD: Final = 64


def parse_slug(value: str, field: str = "slug") -> str:
    """Validate a slug. A slug must not be an id, so that a URL is unambiguous."""
    if not _SLUG.fullmatch(value) or is_id(value):
        raise InvalidInput(
            f"{field}: {value[:80]!r} must be 1 to 64 small letters, digits, - and _, "
            "beginning with a letter or digit, and no id.",
            field=field,
        )
    return value


def parse_tags(values: Iterable[str], field: str = "tags") -> tuple[str, ...]:
    """Normalize tags and remove duplicates."""
    tags = tuple(dict.fromkeys(" ".join(_folded(value).split()) for value in values))
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise InvalidInput(
                f"{field}: {tag[:60]!r} must be 1 to 40 letters, digits, spaces and . + # - _.", field=field
            )
    if len(tags) > MAX_TAGS:
        raise InvalidInput(f"{field}: at most {MAX_TAGS} tags.", field=field)
    return tags


def tags_from_keywords(keywords: Iterable[str]) -> tuple[str, ...]:
    """The keywords of a package that are valid tags."""
    folded = (" ".join(_folded(keyword).split()) for keyword in keywords)
    return tuple(dict.fromkeys(tag for tag in folded if _TAG.fullmatch(tag)))[:MAX_TAGS]


def parse_title(value: str, field: str = "title") -> str:
    title = " ".join(value.split())
    if not title or len(title) > MAX_TITLE or not title.isprintable():
        raise InvalidInput(f"{field}: must be 1 to {MAX_TITLE} printable characters.", field=field)
    return title


def parse_difficulty(value: float | None, field: str = "difficulty") -> float | None:
    """Validate a difficulty; the scale is up to the problem setters."""
    if value is not None and not 0 <= value <= MAX_DIFFICULTY:
        raise InvalidInput(f"{field}: must be from 0 to {MAX_DIFFICULTY:g}.", field=field)
    return value


def search_words(*texts: str) -> tuple[str, ...]:
    """The words that a text is indexed by: case-folded, Unicode-normalized, without duplicates."""
    result = (word[:_LONGEST_WORD] for text in texts for word in _WORD.findall(_folded(text).replace("_", " ")))
    return tuple(dict.fromkeys(result))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
