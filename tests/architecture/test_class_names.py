"""One class name stands for one thing, so that a name in a message, a type or a review needs no package with it."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"


def _modules_by_class() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(SOURCE)))
    return found


def test_class_names_stand_for_one_thing() -> None:
    modules = _modules_by_class()
    assert len(modules) > 500, "the classes of the source are found"
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}
