"""A transaction whose commit is a step of its own, so that a test can interrupt before it."""

from __future__ import annotations

from typing import Any, cast

from adjudge.store import Tx
from adjudge.store.engine.script import Inputs, Returned, Script


class _ExplicitCommitTx:
    """Runs no script as the last of its transaction, so that none commits by itself."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx

    async def run(self, script: Script, inputs: Inputs, /, *, last: bool = False, **parameters: object) -> Returned:
        return await self._tx.run(script, inputs, last=last and self._tx.dialect == "sqlite", **parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


def with_explicit_commit(tx: Tx) -> Tx:
    """Wrap a transaction so that its commit comes after the operation, also if that ends with a last script."""
    return cast("Tx", _ExplicitCommitTx(tx))
