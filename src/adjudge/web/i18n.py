"""Translations of the pages.

A language is a TOML file in ``locales/``. A test checks that all files have the same keys. An unknown key raises
``KeyError``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from adjudge.api.accept_language import preferred_languages
from adjudge.domain.verdict import Verdict

FOLDER: Final = Path(__file__).parent / "locales"
DEFAULT: Final = "en"
COOKIE: Final = "adjudge_lang"


@dataclass(frozen=True, slots=True)
class Translations:
    """The texts of one language."""

    language: str
    """Language tag: ``en``, ``zh-Hans``."""
    name: str
    """Name of the language in that language."""
    texts: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The text of ``key`` with ``values`` inserted; ``count`` selects ``key.one`` or ``key.other``."""
        if "count" in values:
            key = f"{key}.{'one' if values['count'] == 1 else 'other'}"
        return self.texts[key].format(**values) if values else self.texts[key]

    def label(self, group: str, value: object) -> str:
        """The label of an enumeration value; the value itself if it has none (for example a third-party node type)."""
        return self.texts.get(f"{group}.{value}", str(value))


@cache
def available_languages() -> dict[str, Translations]:
    """All languages, by file name."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.toml"))}


def choose_language(cookie: str | None, accepted: str) -> Translations:
    """The language of the cookie, else of ``Accept-Language``, else English."""
    known = available_languages()
    if cookie in known:
        return known[cookie]
    return next((known[code] for code in preferred_languages(accepted) if code in known), known[DEFAULT])


def _read(path: Path) -> Translations:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    about = content.pop("language")
    texts = dict(_flatten(content, ""))
    if path.stem == DEFAULT:
        # The English names of verdicts are defined once, for API, command line and pages.
        texts |= {f"verdict.{verdict}": verdict.title for verdict in Verdict}
    return Translations(about["tag"], about["name"], texts)


def _flatten(content: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
