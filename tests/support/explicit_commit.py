"""A transaction whose commit is a step of its own, so that a test can interrupt before it."""

from __future__ import annotations

from typing import Any, cast

from adjudge.store import Tx


class _ExplicitCommitTx:
    """Runs ``fetch_last`` as ``fetch``, so that the last statement does not commit."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, "fetch" if name == "fetch_last" else name)


def with_explicit_commit(tx: Tx) -> Tx:
    """Wrap a transaction so that its commit comes after the operation, also if that ends with ``fetch_last``."""
    return cast("Tx", _ExplicitCommitTx(tx))
