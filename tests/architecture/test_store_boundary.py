"""SQL stays in ``store/``: statements, columns and their order are then read, tested and changed in one place.

Outside it nobody calls ``fetch``, ``execute`` or ``run`` of a transaction or reads a column by its name; the functions
of an area of the store do, and return its classes. ``CALLS`` and ``COLUMNS`` list the modules that still do. The
numbers may only become smaller.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"
_TRANSACTION_CALLS = {"fetch", "execute", "run"}
CALLS = {
    "chains/advance.py": 5,
    "chains/concurrency.py": 3,
    "chains/control.py": 12,
    "chains/dag_cache.py": 1,
    "chains/job_listener.py": 6,
    "chains/node_scheduler.py": 6,
    "chains/run_lifecycle.py": 4,
    "chains/run_state.py": 4,
    "chains/start_run.py": 6,
}
COLUMNS = {
    "chains/advance.py": 21,
    "chains/concurrency.py": 5,
    "chains/control.py": 19,
    "chains/dag_cache.py": 1,
    "chains/node_scheduler.py": 21,
    "chains/run_lifecycle.py": 7,
    "chains/run_state.py": 10,
    "executors/problems.py": 7,
}


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


def _count(found: Callable[[ast.AST], bool]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if not module.startswith("store/") and _uses_rows(tree):
            counted[module] = sum(map(found, ast.walk(tree)))
    return counted


@pytest.mark.parametrize(
    ("found", "allowed"), [(_is_transaction_call, CALLS), (_is_column, COLUMNS)], ids=["calls", "columns"]
)
def test_no_raw_transactions_outside_the_store(found: Callable[[ast.AST], bool], allowed: dict[str, int]) -> None:
    more = {module: number for module, number in _count(found).items() if number > allowed.get(module, 0)}
    assert more == {}, "move the statement and what reads its rows to the area of the store that owns the table"


def test_the_store_itself_is_recognized() -> None:
    """The checks see such code where it belongs; otherwise they would prove nothing."""
    tree = ast.parse((SOURCE / "store" / "jobs" / "outbox.py").read_text(encoding="utf-8"))
    assert sum(map(_is_transaction_call, ast.walk(tree))) > 3
