"""Composes the chain engine, its wait probes and its triggers.

What runs their nodes is a worker's alone, and stands in ``executors``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.chains.engine import ChainEngine
from adjudge.chains.rights import rights_of
from adjudge.chains.triggers import StartTriggeredRun
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.authority import Authority
from adjudge.domain.errors import Forbidden
from adjudge.domain.permissions import Permission
from adjudge.executors.wakeups import WAIT_PROBES, JudgeRunWakeupListener, fire_chain_finished
from adjudge.settings import Settings
from adjudge.store import Tx
from adjudge.store.chains.models import JOB_KIND_NODE, NewChainRun
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import JobListener
from adjudge.store.judging.commands import JOB_KIND_JUDGE
from adjudge.store.judging.executions import JOB_KIND_EXECUTE, ExecutionListener
from adjudge.store.judging.listeners import judge_run_listeners
from adjudge.store.problems import imports
from adjudge.store.problems.imports import ImportListener
from adjudge.store.webhooks.commands import JOB_KIND_WEBHOOK, WebhookDeliveryListener


def make_engine(settings: Settings) -> ChainEngine:
    """The chain engine with its wait probes and its listeners for finished runs."""
    return ChainEngine(
        probes=WAIT_PROBES, on_run_ended=[fire_chain_finished], node_timeout_ms=node_timeout_ms(settings)
    )


def node_timeout_ms(settings: Settings) -> int:
    """Default timeout of one attempt of a node."""
    return round(settings.chains.node_timeout_sec * 1_000)


def make_job_listeners(engine: ChainEngine, settings: Settings) -> dict[str, JobListener]:
    """The job listener of each kind of job."""
    return {
        JOB_KIND_JUDGE: JudgeRunWakeupListener(judge_run_listeners(CONTEST_LISTENER), lambda: engine.resume),
        JOB_KIND_NODE: engine.job_listener,
        imports.JOB_KIND_IMPORT: ImportListener(),
        JOB_KIND_EXECUTE: ExecutionListener(),
        JOB_KIND_WEBHOOK: WebhookDeliveryListener(disable_after=settings.webhooks.disable_after),
    }


def make_jobs(settings: Settings, engine: ChainEngine | None = None) -> JobCommands:
    return JobCommands(make_job_listeners(engine or make_engine(settings), settings), policy=settings.retry.policy())


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
                "Whoever saved the trigger and the chain may not start runs any more (run:control): the user is "
                "disabled, or the token was revoked or lacks it. Save both again as a user with this permission."
            )
        wanted = NewChainRun(chain_id, parameters, idempotency_key, actor, trigger_kind, authority=authority)
        return (await engine.start(tx, wanted)).run_id

    return start
