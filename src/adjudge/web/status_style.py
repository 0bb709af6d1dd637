"""Which colour a state has: one table, for badges, plots and drawings alike."""

from __future__ import annotations

from typing import Final

_MEANINGS: Final = {
    "good": "AC accepted succeeded success published ready ok applied delivered replayed open_ok",
    "bad": "WA TLE MLE OLE RE wrong_answer error failed withdrawn lost broken",
    "warn": "PA CE SE retrying stopping draining degraded skipped draft queued partial canceled stopped discarded",
    "info": "judging running pending_run importing verifying starting",
}
_BY_STATE: Final = {state: meaning for meaning, states in _MEANINGS.items() for state in states.split()}


def status_class(state: object) -> str:
    """The colour class of a state; none for what merely waits."""
    return _BY_STATE.get(str(state), "")
