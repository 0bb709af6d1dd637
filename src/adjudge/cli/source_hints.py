"""Problem, contest and language of a solution, from its first lines and from its name.

A line such as ``// adjudge: problem=multiples language=cpp20`` among the first ones names them, in any kind of comment.
Without it, the name of the file or of its folder is the slug of the problem: ``multiples.py``, ``multiples-2.cpp``,
``multiples/main.rs``; in a contest ``a.cpp`` is problem A.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adjudge.client import ApiError, Client
from adjudge.domain.errors import InvalidInput
from adjudge.judge.sources import SourceFile

_LINES: Final = 10
_LINE_BYTES: Final = 4_096
_MARK: Final = re.compile(r"(?<![\w/])adjudge:\s+(.*)")
_PAIR: Final = re.compile(r"(?<!\S)(\w[\w-]*)=([\w./+#-]*\w)")
_KEYS: Final = frozenset({"problem", "contest", "language", "entry-point"})
_INTERPRETERS: Final = {"pypy3": "pypy3", "python3": "python3", "python": "python3", "node": "javascript"}
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class SourceHints:
    """What the first lines of a solution say about it; empty where they say nothing."""

    problem: str = ""
    contest: str = ""
    language: str = ""
    entry_point: str = ""


def read_hints(files: Sequence[SourceFile]) -> SourceHints:
    """The hints in the first lines of the files; two files must not contradict each other."""
    found: dict[str, str] = {}
    for file in files:
        for key, value in _file_hints(file).items():
            if found.setdefault(key, value) != value:
                raise InvalidInput(f"{file.name}: {key}={value} contradicts {key}={found[key]}.", field=key)
    return SourceHints(
        found.get("problem", ""), found.get("contest", ""), found.get("language", ""), found.get("entry-point", "")
    )


def _file_hints(file: SourceFile) -> dict[str, str]:
    lines = file.data[: _LINES * _LINE_BYTES].decode("utf-8", "replace").splitlines()[:_LINES]
    found: dict[str, str] = {}
    if lines and lines[0].startswith("#!") and "." not in file.name:
        words = lines[0].rpartition("/")[2].split()
        if words and words[-1] in _INTERPRETERS:
            found["language"] = _INTERPRETERS[words[-1]]
    for line in lines:
        if (mark := _MARK.search(line)) is None:
            continue
        for key, value in _PAIR.findall(mark[1]):
            if key not in _KEYS:
                known = ", ".join(sorted(_KEYS))
                raise InvalidInput(f"{file.name}: `adjudge: {key}=` is unknown; known are {known}.", field=key)
            found[key] = value
    return found


def problem_names(paths: Sequence[Path]) -> list[str]:
    """The slugs that the name of a solution may stand for, the likeliest first."""
    path = paths[0].absolute()
    name = path.name if path.is_dir() else path.name.partition(".")[0]
    names = [name, *(name[: match.start()] for match in reversed([*re.finditer(r"[-_]", name)])), path.parent.name]
    return list(dict.fromkeys(item.lower() for item in names if item))


def find_problem(client: Client, paths: Sequence[Path], contest: str) -> str:
    """The problem that a solution without a hint is for; on the server, by its name."""
    names = problem_names(paths)
    look: Callable[[str], object] = client.problem
    if contest:
        look = lambda name: client.contest_problem(contest, name)  # noqa: E731  # the two have different parameters
    for name in names:
        try:
            look(name)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
        else:
            return name
    tried = ", ".join(names)
    raise InvalidInput(
        f"problem: none is named like the file ({tried}); use --problem, or a comment `adjudge: problem=SLUG`.",
        field="problem",
    )
