"""SQL stays in ``store/``: statements, columns and their order are then read, tested and changed in one place.

Other packages do not call ``fetch``, ``execute`` or ``run`` of a transaction and do not read columns by name; they call
functions of the store, which return its classes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"
_TRANSACTION_CALLS = {"fetch", "execute", "run"}


def _is_transaction_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "fetch_one"
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in _TRANSACTION_CALLS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "tx"
    )


def _is_column(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "row"
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )


def _uses_rows(tree: ast.Module) -> bool:
    """Whether a module has to do with rows of the database: it imports their type, or a transaction's."""
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("adjudge.store")
        and {"Row", "Tx"} & {alias.name for alias in node.names}
        for node in ast.walk(tree)
    )


def _places_outside_the_store(is_forbidden: Callable[[ast.AST], bool]) -> list[str]:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if not module.startswith("store/") and _uses_rows(tree):
            nodes = filter(is_forbidden, ast.walk(tree))
            found += [f"{module}:{getattr(node, 'lineno', 0)}" for node in nodes]
    return found


@pytest.mark.parametrize("is_forbidden", [_is_transaction_call, _is_column], ids=["calls", "columns"])
def test_no_raw_transactions_outside_the_store(is_forbidden: Callable[[ast.AST], bool]) -> None:
    places = _places_outside_the_store(is_forbidden)
    assert places == [], "move the statement and what reads its rows to the area of the store that owns the table"


def test_the_store_itself_is_recognized() -> None:
    """The checks see such code where it belongs; otherwise they would prove nothing."""
    tree = ast.parse((SOURCE / "store" / "jobs" / "outbox.py").read_text(encoding="utf-8"))
    assert sum(map(_is_transaction_call, ast.walk(tree))) > 3
