"""The parts of chains, put together: the engine, what it waits on, and what starts runs by itself.

What runs their nodes is a worker's alone, and stands in ``executors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.chains.awaiting import PROBES, JudgeRunsAwaited, run_ended
from adjudge.chains.engine import Engine
from adjudge.chains.triggers import StartRun
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


def make_engine() -> Engine:
    """The engine, with everything that nodes wait on and whoever wants to know of a run's end."""
    return Engine(probes=PROBES, on_run_ended=[run_ended])


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
    return Jobs(make_owners(engine or make_engine(), settings), policy=settings.retry.policy())


def run_starter(engine: Engine) -> StartRun:
    """How triggers start runs."""

    async def start(
        tx: Tx, *, chain_id: str, parameters: Mapping[str, Any], idempotency_key: str, trigger_kind: str, actor: str
    ) -> str:
        wanted = NewRun(chain_id, parameters, idempotency_key, actor, trigger_kind)
        return (await engine.start(tx, wanted)).run_id

    return start
