"""The parts of chains, put together: the engine, what it waits on, and what starts runs by itself.

What runs their nodes is a worker's alone, and stands in ``executors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.chains.awaiting import PROBES, JudgeRunsAwaited, run_ended
from adjudge.chains.engine import Engine
from adjudge.chains.rights import rights_of
from adjudge.chains.triggers import StartRun
from adjudge.domain.access import Permission
from adjudge.domain.authority import Authority
from adjudge.domain.errors import Forbidden
from adjudge.settings import Settings
from adjudge.store import Tx, problem_imports
from adjudge.store.chain_values import NODE, NewRun
from adjudge.store.executions import EXECUTE, ExecutionOwner
from adjudge.store.job_values import JobOwner
from adjudge.store.jobs import Jobs
from adjudge.store.owners import judge_run_owners
from adjudge.store.problem_imports import ImportOwner
from adjudge.store.submissions import JUDGE
from adjudge.store.webhooks import WEBHOOK, DeliveryOwner


def make_engine(settings: Settings) -> Engine:
    """The engine, with everything that nodes wait on and whoever wants to know of a run's end."""
    return Engine(probes=PROBES, on_run_ended=[run_ended], node_timeout_ms=node_timeout_ms(settings))


def node_timeout_ms(settings: Settings) -> int:
    """How long an attempt of a node may run that has no timeout of its own."""
    return round(settings.chains.node_timeout_sec * 1_000)


def make_owners(engine: Engine, settings: Settings) -> dict[str, JobOwner]:
    """What each kind of job belongs to."""
    return {
        JUDGE: JudgeRunsAwaited(judge_run_owners(), lambda: engine.resume),
        NODE: engine.owner,
        problem_imports.KIND: ImportOwner(),
        EXECUTE: ExecutionOwner(),
        WEBHOOK: DeliveryOwner(disable_after=settings.webhooks.disable_after),
    }


def make_jobs(settings: Settings, engine: Engine | None = None) -> Jobs:
    """Jobs, with everything that owns them."""
    return Jobs(make_owners(engine or make_engine(settings), settings), policy=settings.retry.policy())


def run_starter(engine: Engine) -> StartRun:
    """How triggers start runs."""

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
                "Whoever saved the trigger and the chain may not start runs any more (run:control): the user is "
                "disabled, or the token was revoked or lacks it. Save both again as somebody who may."
            )
        wanted = NewRun(chain_id, parameters, idempotency_key, actor, trigger_kind, authority=authority)
        return (await engine.start(tx, wanted)).run_id

    return start
