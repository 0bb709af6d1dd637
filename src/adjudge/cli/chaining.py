"""The parts of chains, put together: the engine, what it waits on, the executors and what starts runs by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import Blobs
from adjudge.chains import registry
from adjudge.chains.awaiting import PROBES, JudgeRunsAwaited, run_ended
from adjudge.chains.engine import Engine
from adjudge.chains.executor import Executor
from adjudge.chains.executors.outgoing import AllowList, Outgoing
from adjudge.chains.triggers import StartRun
from adjudge.judge.pipeline import Judge
from adjudge.settings import Settings
from adjudge.store import Database, Tx, problem_imports
from adjudge.store.chain_values import NODE, NewRun
from adjudge.store.executions import EXECUTE, ExecutionOwner
from adjudge.store.job_values import JobOwner
from adjudge.store.jobs import Jobs
from adjudge.store.owners import judge_run_owners
from adjudge.store.problem_imports import ImportOwner
from adjudge.store.rejudge import Rejudging
from adjudge.store.submissions import JUDGE, Submissions
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


def make_outgoing(settings: Settings) -> Outgoing:
    """Calls to the hosts that the operator listed."""
    chains = settings.chains
    return Outgoing(AllowList.parse(chains.http_allow), chains.http_secret.reveal().encode())


def make_executors(
    settings: Settings,
    *,
    database: Database,
    jobs: Jobs,
    engine: Engine,
    blobs: Blobs,
    cache: BlobCache,
    judge: Judge,
) -> dict[str, Executor]:
    """Every executor that is installed, with the parts it asks for by name."""
    parts: dict[str, Any] = {
        "database": database,
        "jobs": jobs,
        "submissions": Submissions(jobs),
        "rejudging": Rejudging(jobs),
        "start_chain": engine.start,
        "blobs": blobs,
        "cache": cache,
        "judge": judge,
        "outgoing": make_outgoing(settings),
    }
    return registry.found().build(parts)


def run_starter(engine: Engine) -> StartRun:
    """How triggers start runs."""

    async def start(
        tx: Tx, *, chain_id: str, parameters: Mapping[str, Any], idempotency_key: str, trigger_kind: str, actor: str
    ) -> str:
        wanted = NewRun(chain_id, parameters, idempotency_key, actor, trigger_kind)
        return (await engine.start(tx, wanted)).run_id

    return start
