"""The operator's language file: overrides the built-in table, validated key by key.

A table with a known id changes the keys it contains, ``disabled`` included; a table with a new id adds a language and
must be complete.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from adjudge.domain.errors import InvalidInput

_TEXT: Final = ("name", "code", "source", "package", "names", "pin")
_FLAGS: Final = ("default", "disabled")
_LISTS: Final = (
    "extensions",
    "tools",
    "run",
    "run_class",
    "version",
    "compile",
    "keep",
    "main_names",
    "aliases",
    "mounts",
    "needs",
    "out_of_memory",
)
_TABLES: Final = ("compile_env", "run_env")
_COUNTS: Final = {
    "processes": (1, 10_000),
    "extra_memory_mib": (0, 65_536),
    "compile_memory_mib": (16, 65_536),
    "compile_work_mib": (16, 65_536),
}
_TIME_FACTORS: Final = (0.1, 100.0)
_REQUIRED: Final = ("name", "code", "extensions", "source", "tools", "run")
_ID: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
KEYS: Final = frozenset({*_TEXT, *_LISTS, *_TABLES, *_COUNTS, *_FLAGS, "time_factor"})
"""Every key of a language except its id; a test compares them with ``Language``."""


class LanguageOrigin(StrEnum):
    """Where the entry of a language comes from."""

    BUILT_IN = "built-in"
    CHANGED = "changed"
    """A built-in language, changed by the operator's file."""
    ADDED = "added"
    """A language of the operator's file only."""


@dataclass(frozen=True, slots=True)
class LanguageSource:
    """The origin of a language and the keys that the operator's file sets."""

    origin: LanguageOrigin = LanguageOrigin.BUILT_IN
    keys: tuple[str, ...] = ()


def find_sources(
    tables: Mapping[str, dict[str, Any]], overlay: Mapping[str, dict[str, Any]]
) -> dict[str, LanguageSource]:
    """The source of each language that the overlay has."""
    return {
        key: LanguageSource(LanguageOrigin.CHANGED if key in tables else LanguageOrigin.ADDED, tuple(sorted(body)))
        for key, body in overlay.items()
    }


def read_overlay(path: Path) -> dict[str, Any]:
    """Read the operator's file."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise _refused(str(path), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _refused(str(path), f"is not valid TOML: {error}") from error


def overlaid(tables: Mapping[str, dict[str, Any]], overlay: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """Merge the overlay into the tables; errors name file, language and key."""
    merged = {key: dict(body) for key, body in tables.items()}
    for key, body in overlay.items():
        if not _ID.fullmatch(key):
            raise _refused(
                f"{where}: {key!r}",
                "an id must match [a-z][a-z0-9_-]{0,31}",
            )
        if not isinstance(body, dict):
            raise _refused(f"{where}: {key}", "must be a table: [ID], then keys")
        for name, value in body.items():
            _check(f"{where}: {key}.{name}", name, value)
        merged[key] = merged.get(key, {}) | body
        for name in _REQUIRED:
            if not merged[key].get(name):
                raise _refused(f"{where}: {key}.{name}", "is missing; a new language needs " + ", ".join(_REQUIRED))
    return merged


def _check(path: str, name: str, value: object) -> None:
    if name not in KEYS:
        raise _refused(path, f"is not a known key; known keys: {', '.join(sorted(KEYS))}")
    if name in _TEXT and not isinstance(value, str):
        raise _refused(path, "must be a string")
    if name in _LISTS and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise _refused(path, "must be a list of strings")
    if name in _TABLES and not (isinstance(value, dict) and all(isinstance(item, str) for item in value.values())):
        raise _refused(path, "must be a table of strings")
    if name in _FLAGS and not isinstance(value, bool):
        raise _refused(path, "must be true or false")
    if name in _COUNTS:
        _check_number(path, value, *_COUNTS[name], whole=True)
    if name == "time_factor":
        _check_number(path, value, *_TIME_FACTORS, whole=False)


def _check_number(path: str, value: object, minimum: float, maximum: float, *, whole: bool) -> None:
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not minimum <= value <= maximum:
        raise _refused(path, f"must be {'an integer' if whole else 'a number'} from {minimum} to {maximum}")


def _refused(path: str, problem: str) -> InvalidInput:
    return InvalidInput(f"judge.languages_file: {path} {problem}.", field="judge.languages_file")
