"""A function names what it depends on: it takes a database or a blob store, not one object that holds everything.

A function that takes ``Parts`` can use all of it: a reader must read the body to know what it needs, and a test must
build everything to call it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"
_CONTAINER = re.compile(r"\b\w*Parts\b")


def _annotations(tree: ast.Module) -> list[ast.expr]:
    return [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation]


def _count() -> Counter[str]:
    counted: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        counted[path.relative_to(SOURCE).parts[0]] += sum(
            _CONTAINER.search(ast.unparse(annotation)) is not None for annotation in _annotations(tree)
        )
    return counted


def test_nothing_takes_a_container_of_dependencies() -> None:
    assert {package: number for package, number in _count().items() if number} == {}, "take the dependencies themselves"
