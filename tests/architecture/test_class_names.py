"""One class name stands for one thing, so that a name in a message, a type or a review needs no package with it.

Two names may stand for two things if a list here says why. The list stays below ten; a class that is not on it gets a
name that says what distinguishes it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"
_CLIENT = "the client is a library of its own: its callers see the plain name, and it imports nothing of the server"
SHARED = {
    "Execution": _CLIENT,
    "Language": _CLIENT,
    "Limits": _CLIENT,
    "Node": _CLIENT,
    "Problem": _CLIENT,
    "RejudgePreview": _CLIENT,
    "SecretName": _CLIENT,
    "Step": "a statement of a script in store/engine, and the batched step of chains until follow-up claims replace it",
}
FEWER_THAN = 10


def _modules_by_class() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(SOURCE)))
    return found


def test_class_names_stand_for_one_thing() -> None:
    shared = {name: modules for name, modules in _modules_by_class().items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in SHARED} == {}


def test_few_class_names_stand_for_two_things() -> None:
    assert len(SHARED) < FEWER_THAN
