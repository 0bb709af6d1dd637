"""The executors of chains, with the parts that each asks for: what a worker runs nodes by."""

from __future__ import annotations

from typing import Any

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import Blobs
from adjudge.chains import registry
from adjudge.chains.engine import Engine
from adjudge.chains.executor import Executor
from adjudge.chains.executors.outgoing import AllowList, Outgoing
from adjudge.judge.pipeline import Judge
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs import Jobs
from adjudge.store.rejudge import Rejudging
from adjudge.store.submissions import Submissions


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
        "outgoing": _make_outgoing(settings),
    }
    return registry.found().build(parts)


def _make_outgoing(settings: Settings) -> Outgoing:
    """Calls to the hosts that the operator listed."""
    chains = settings.chains
    return Outgoing(AllowList.parse(chains.http_allow), chains.http_secret.reveal().encode())
