"""Composes the executors of chain nodes with their dependencies."""

from __future__ import annotations

from typing import Any

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.chains import executor_registry
from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor import Executor
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.judge.pipeline import Judge
from adjudge.services.http_client import GuardedHttpClient, HostAllowList
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.rejudge import RejudgeCommands


def make_executors(
    settings: Settings,
    *,
    database: Database,
    jobs: JobCommands,
    engine: ChainEngine,
    blobs: BlobStore,
    cache: BlobCache,
    judge: Judge,
) -> dict[str, Executor]:
    """All installed executors with the dependencies that they declare by name."""
    parts: dict[str, Any] = {
        "database": database,
        "jobs": jobs,
        "submissions": SubmissionCommands(jobs, listener=CONTEST_LISTENER),
        "rejudging": RejudgeCommands(jobs, listener=CONTEST_LISTENER),
        "start_chain": engine.start,
        "blobs": blobs,
        "cache": cache,
        "judge": judge,
        "outgoing": _make_http_client(settings),
    }
    return executor_registry.discover_executors().build(parts)


def _make_http_client(settings: Settings) -> GuardedHttpClient:
    """Calls to the hosts that the operator listed."""
    chains = settings.chains
    return GuardedHttpClient(HostAllowList.parse(chains.http_allow), chains.http_secret.reveal().encode())
