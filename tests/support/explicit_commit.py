"""Transactions that somebody leaves at the last moment."""

from __future__ import annotations

from typing import Any, cast

from adjudge.store import Tx


class _ExplicitCommitTx:
    """A transaction whose last statement does not commit it, so that there is a moment before it does."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, "fetch" if name == "fetch_last" else name)


def with_explicit_commit(tx: Tx) -> Tx:
    """The transaction, for an operation after which there is still the commit to come, even if its last statement is ``fetch_last``."""
    return cast("Tx", _ExplicitCommitTx(tx))
