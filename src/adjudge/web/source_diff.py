"""Which files of a submission differ from those of another one, as unified diffs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adjudge.domain.text_diff import Budget, unified
from adjudge.judge.sources import ProgramSource

_DIFF_MOST: Final = 256 * 1024
"""Longer files and binary files are left out."""


@dataclass(frozen=True, slots=True)
class SourceFileDiff:
    """How a file changed."""

    name: str
    lines: tuple[str, ...]
    """Lines of a unified diff, without its header."""


def diff_sources(before: ProgramSource, after: ProgramSource) -> list[SourceFileDiff]:
    """The files that differ. Single files are compared whatever their names are: those depend on the language."""
    old, new, budget = _texts(before), _texts(after), Budget()
    if len(old) == len(new) == 1:
        name = next(iter(new))
        old = {name: next(iter(old.values()))}
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return [SourceFileDiff(name, _diff(old, new, name, budget)) for name in names]


def _diff(old: Mapping[str, str], new: Mapping[str, str], name: str, budget: Budget) -> tuple[str, ...]:
    lines = [*unified(old.get(name, "").splitlines(), new.get(name, "").splitlines(), name, budget)]
    return tuple(lines[2:])


def _texts(source: ProgramSource) -> dict[str, str]:
    return {
        file.name: file.data.decode("utf-8", "replace")
        for file in source.files
        if len(file.data) <= _DIFF_MOST and b"\0" not in file.data
    }
