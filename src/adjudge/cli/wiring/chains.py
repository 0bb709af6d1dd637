"""Constructs the chain engine with its wait probes, and the function that starts triggered runs.

The executors, which only workers need, are constructed in ``cli/wiring/executors.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.chains.engine import ChainEngine
from adjudge.chains.rights import rights_of
from adjudge.chains.triggers import StartTriggeredRun
from adjudge.domain.authority import Authority
from adjudge.domain.errors import Forbidden
from adjudge.domain.permissions import Permission
from adjudge.executors.wakeups import WAIT_PROBES, fire_chain_finished
from adjudge.settings import Settings
from adjudge.store import Tx
from adjudge.store.chains.models import NewChainRun


def make_engine(settings: Settings) -> ChainEngine:
    """The chain engine with its wait probes and its listeners for finished runs."""
    return ChainEngine(
        probes=WAIT_PROBES, on_run_ended=[fire_chain_finished], node_timeout_ms=node_timeout_ms(settings)
    )


def node_timeout_ms(settings: Settings) -> int:
    """Default timeout of one attempt of a node."""
    return round(settings.chains.node_timeout_sec * 1_000)


def run_starter(engine: ChainEngine) -> StartTriggeredRun:
    async def start(
        tx: Tx,
        *,
        chain_id: str,
        parameters: Mapping[str, Any],
        idempotency_key: str,
        trigger_kind: str,
        actor: str,
        authority: Authority | None,
    ) -> str:
        if not (await rights_of(tx, authority)).may(Permission.RUN_CONTROL):
            raise Forbidden(
                "The user who saved the trigger and the chain no longer has the permission run:control: the user is "
                "disabled, or the token was revoked or lacks it. Save both again as a user with this permission."
            )
        wanted = NewChainRun(chain_id, parameters, idempotency_key, actor, trigger_kind, authority=authority)
        return (await engine.start(tx, wanted)).run_id

    return start
