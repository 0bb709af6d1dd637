"""What the server is made of: everything that routes and pages need, passed in by the composition root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from adjudge.api.audience import Audience
from adjudge.api.credentials import Credentials
from adjudge.api.desk import Desk
from adjudge.api.gate import Gate
from adjudge.api.oidc import OidcProvider
from adjudge.api.passwords import Passwords
from adjudge.api.tail import Tail
from adjudge.blobs.driver import Blobs
from adjudge.cache.buckets import Buckets
from adjudge.cache.cache import Cache
from adjudge.chains.awaiting import PROBES, run_ended
from adjudge.chains.engine import Engine
from adjudge.chains.registry import Registry as ExecutorRegistry
from adjudge.chains.registry import installed
from adjudge.domain.ids import NewId, new_id
from adjudge.judge.languages import Languages
from adjudge.registry.driver import Registry
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs import Jobs
from adjudge.stream.driver import Stream

Check = Callable[[], Awaitable[None]]
"""Asks one part whether it answers; returns if it does, raises if not."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one server."""

    settings: Settings
    database: Database
    jobs: Jobs
    blobs: Blobs
    stream: Stream
    registry: Registry
    buckets: Buckets
    """Shared by all servers while Redis answers, of this process while it does not."""
    gate: Gate
    credentials: Credentials
    passwords: Passwords
    cache: Cache
    """``await cache.get(Entity.X, key, load)``; only for what the asker was found to be allowed."""
    languages: Languages
    desk: Desk
    """Where submissions are handed in."""
    tail: Tail
    """Where events are heard, and ends waited for."""
    audience: Audience
    """Who watches: seats for event streams."""
    oidc: OidcProvider | None = None
    """Another provider that people may log in by."""
    checks: Mapping[str, Check] = field(default_factory=dict)
    """What must answer before the server counts as ready."""
    mint: NewId = new_id
    engine: Engine = field(default_factory=lambda: Engine(probes=PROBES, on_run_ended=[run_ended]))
    """Starts and controls runs of chains."""

    @property
    def executors(self) -> ExecutorRegistry:
        """What a node of a chain may be."""
        return installed()
