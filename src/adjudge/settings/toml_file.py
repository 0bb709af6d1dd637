"""Reads ``adjudge.toml`` and finds the line of each key, for error messages."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.settings.sections import all_settings

DEFAULT_FILE: Final = Path("adjudge.toml")


@dataclass(frozen=True, slots=True)
class TomlFile:
    """The file flattened to ``section.key``, with its lines."""

    path: Path
    lines: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def read(cls, named: Path | None) -> TomlFile:
        """Read ``named``, or ``adjudge.toml`` in the working directory if it exists."""
        path = named or DEFAULT_FILE
        try:
            text = path.read_text(encoding="utf-8")
            tables = tomllib.loads(text)
        except FileNotFoundError:
            if named is None:
                return cls(path)
            raise InvalidInput(f"{path}: file not found.", field="file") from None
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{path}: cannot be read: {error}", field="file") from None
        toml = cls(path, tuple(text.splitlines()), dict(_flatten(tables)))
        toml._check_names()
        return toml

    def where(self, name: str) -> str:
        """``FILE:LINE`` of a key; only the file if the line is not found (inline tables, quoted keys)."""
        section, _, key = name.rpartition(".")
        current = ""
        for number, line in enumerate(self.lines, 1):
            text = line.strip()
            if text.startswith("["):
                current = text.strip("[] \t")
            elif re.split(r"[\s=]", text)[0] in ((key,) if current == section else (name,) if not current else ()):
                return f"{self.path}:{number}"
        return str(self.path)

    def _check_names(self) -> None:
        known = [name for name, _, _ in all_settings()]
        for name in self.values:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}?" if close else "`adjudge config` lists all settings."
                raise InvalidInput(f"{name} ({self.where(name)}): unknown setting; {hint}", field=name)


def _flatten(tables: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for section, content in tables.items():
        if isinstance(content, dict):
            yield from ((f"{section}.{key}", value) for key, value in content.items())
        else:
            yield section, content
