"""Every word that pages show, in every language they speak.

A language is a TOML file in ``locales/``. A key that one language has and another lacks is found by a test, so that
nobody sees half a translation; a key that no language has is our own fault and fails loudly.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from adjudge.api.dependencies import preferred_languages
from adjudge.domain.verdict import Verdict

FOLDER: Final = Path(__file__).parent / "locales"
DEFAULT: Final = "en"
COOKIE: Final = "adjudge_lang"


@dataclass(frozen=True, slots=True)
class Translations:
    """The words of one language."""

    language: str
    """As browsers name it: ``en``, ``zh-Hans``."""
    name: str
    """As its speakers name it."""
    texts: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """The text under ``key``, with ``values`` put in; ``count`` chooses between ``key.one`` and ``key.other``."""
        if "count" in values:
            key = f"{key}.{'one' if values['count'] == 1 else 'other'}"
        return self.texts[key].format(**values) if values else self.texts[key]

    def label(self, group: str, value: object) -> str:
        """What a value of an enumeration is called; itself where nobody named it (a third party's node type)."""
        return self.texts.get(f"{group}.{value}", str(value))


@cache
def available_languages() -> dict[str, Translations]:
    """Every language there is, by its file's name."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.toml"))}


def choose_language(cookie: str | None, accepted: str) -> Translations:
    """The reader's own choice, else what their browser asks for, else English."""
    known = available_languages()
    if cookie in known:
        return known[cookie]
    return next((known[code] for code in preferred_languages(accepted) if code in known), known[DEFAULT])


def _read(path: Path) -> Translations:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    about = content.pop("language")
    texts = dict(_flatten(content, ""))
    if path.stem == DEFAULT:
        # One source for the English names of verdicts: the API, the command line and pages say the same.
        texts |= {f"verdict.{verdict}": verdict.title for verdict in Verdict}
    return Translations(about["tag"], about["name"], texts)


def _flatten(content: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
