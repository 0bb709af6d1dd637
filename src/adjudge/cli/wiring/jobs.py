"""Constructs the job commands with the job listener of each kind of job.

The listener of judge runs lists everything that is written in the transaction of a verdict.
"""

from __future__ import annotations

from adjudge.chains.engine import ChainEngine
from adjudge.cli.wiring.chains import make_engine
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.executors.wakeups import JudgeRunWakeupListener
from adjudge.settings import Settings
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import JobListener
from adjudge.store.judging.commands import JOB_KIND_JUDGE
from adjudge.store.judging.evaluations import JOB_KIND_EVALUATE, EvaluationListener
from adjudge.store.judging.executions import JOB_KIND_EXECUTE, ExecutionListener
from adjudge.store.judging.listeners import judge_run_listeners
from adjudge.store.ops.mails import JOB_KIND_MAIL, MailListener
from adjudge.store.problems.imports import JOB_KIND_IMPORT, ImportListener
from adjudge.store.webhooks.commands import JOB_KIND_WEBHOOK, WebhookDeliveryListener


def make_job_listeners(engine: ChainEngine, settings: Settings) -> dict[str, JobListener]:
    """The job listener of each kind of job."""
    return {
        JOB_KIND_JUDGE: JudgeRunWakeupListener(judge_run_listeners(CONTEST_LISTENER), lambda: engine.resume),
        JOB_KIND_NODE: engine.job_listener,
        JOB_KIND_IMPORT: ImportListener(),
        JOB_KIND_EXECUTE: ExecutionListener(),
        JOB_KIND_EVALUATE: EvaluationListener(),
        JOB_KIND_MAIL: MailListener(),
        JOB_KIND_WEBHOOK: WebhookDeliveryListener(disable_after=settings.webhooks.disable_after),
    }


def make_jobs(settings: Settings, engine: ChainEngine | None = None) -> JobCommands:
    return JobCommands(make_job_listeners(engine or make_engine(settings), settings), policy=settings.retry.policy())
