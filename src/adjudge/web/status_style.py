"""Style class of each state, for badges, plots and DAGs."""

from __future__ import annotations

from typing import Final

_MEANINGS: Final = {
    "good": "AC accepted succeeded success published ready ok applied delivered replayed open_ok",
    "bad": "WA TLE MLE OLE RE wrong_answer error failed withdrawn lost broken",
    "warn": (
        "PA CE SE retrying stopping paused draining degraded skipped draft queued partial canceled stopped discarded"
    ),
    "info": "judging running pending_run importing verifying starting",
}
_BY_STATE: Final = {state: meaning for meaning, states in _MEANINGS.items() for state in states.split()}


def status_class(state: object) -> str:
    """The style class of a state; empty for pending ones."""
    return _BY_STATE.get(str(state), "")
