"""Reads the fields of a ``format_cfg`` document; every error names the field and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.domain.errors import InvalidInput


class ConfigFields:
    """The fields of one document. Call ``finish`` after reading them: it refuses fields that the format lacks."""

    def __init__(self, document: Mapping[str, Any], name: str = "format_cfg") -> None:
        if not isinstance(document, Mapping):
            raise InvalidInput(f"{name}: must be an object.", field=name)
        self._document, self._name = document, name
        self._read: list[str] = []

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._error(key, f"must be an integer from {low} to {high}")
        return value

    def optional_integer(self, key: str, low: int, high: int) -> int | None:
        if self._get(key, None) is None:
            return None
        return self.integer(key, low, low, high)

    def boolean(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self._error(key, "must be true or false")
        return value

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        value = self._get(key, default)
        if value not in choices:
            raise self._error(key, f"must be one of {', '.join(choices)}")
        return str(value)

    def finish(self) -> None:
        """Refuse unknown fields."""
        unknown = sorted(str(key) for key in self._document if key not in self._read)
        if unknown:
            known = ", ".join(sorted(set(self._read))) or "none"
            raise self._error(unknown[0], f"unknown field; remove it (fields of this format: {known})")

    def _get(self, key: str, default: Any) -> Any:
        self._read.append(key)
        return self._document.get(key, default)

    def _error(self, key: str, text: str) -> InvalidInput:
        path = f"{self._name}.{key[:64]}"
        return InvalidInput(f"{path}: {text}.", field=path)
