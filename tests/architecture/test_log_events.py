"""Log events have one form, so that they can be found and counted without knowing the code.

An event is snake_case: its subject, then what happened to it as a past participle (``job_finished``). An event that
reports a state instead ends in one of ``STATES``: the dependency is tried again, or a value is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"
LOGGERS = {"log", "_log", "self._log"}
LEVELS = {"debug", "info", "warning", "error", "exception"}
IRREGULAR = {"lost", "left"}
"""Past participles that do not end in -ed."""
STATES = {"retrying", "reconnecting", "unavailable", "unknown"}
EXCEPTIONS = {"chain_notify": "logs the message of a `notify` node, whose type is the event"}


def _events() -> Iterator[tuple[str, str]]:
    """Yield where each event is logged, and its name; an ``Outage`` logs the event that it is given."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            where = f"{path.relative_to(SOURCE)}:{node.lineno}"
            if isinstance(node.func, ast.Name) and node.func.id == "Outage":
                yield from ((where, name) for name in _texts(node.args[1]))
            elif (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in LEVELS
                and ast.unparse(node.func.value) in LOGGERS
            ):
                yield from ((where, name) for name in _texts(node.args[0]))


def _texts(argument: ast.expr) -> list[str]:
    """Return the constants that an argument may be: both branches of a conditional, none for a variable."""
    if isinstance(argument, ast.IfExp):
        return _texts(argument.body) + _texts(argument.orelse)
    return [argument.value] if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else []


def _is_well_formed(event: str) -> bool:
    if not re.fullmatch(r"[a-z]+(?:_[a-z0-9]+)+", event):
        return False
    last = event.rpartition("_")[2]
    return last.endswith("ed") or last in IRREGULAR | STATES or event in EXCEPTIONS


def test_log_events_name_a_subject_and_a_past_participle() -> None:
    events = list(_events())
    assert len(events) > 60
    assert [f"{where}: {event}" for where, event in events if not _is_well_formed(event)] == []


def test_each_exception_is_still_logged() -> None:
    assert set(EXCEPTIONS) <= {event for _, event in _events()}
