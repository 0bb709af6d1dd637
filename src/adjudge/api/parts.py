"""What the server is made of: everything that routes and pages need, passed in by the composition root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from adjudge.api.sse import SseConnections
from adjudge.blobs.driver import BlobStore
from adjudge.cache.token_buckets import TokenBuckets
from adjudge.cache.two_tier import TwoTierCache
from adjudge.chains.engine import ChainEngine
from adjudge.chains.executor_registry import ExecutorRegistry, installed_executors
from adjudge.domain.ids import IdFactory, new_id
from adjudge.judge.languages import Languages
from adjudge.registry.driver import Registry
from adjudge.services.admission import AdmissionController
from adjudge.services.credentials import CredentialCache
from adjudge.services.event_feed import EventFeed
from adjudge.services.oidc import OidcProvider
from adjudge.services.passwords import PasswordHashing
from adjudge.services.submit_batcher import SubmitBatcher
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.stream.driver import Stream

Check = Callable[[], Awaitable[None]]
"""Asks one part whether it answers; returns if it does, raises if not."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one server."""

    settings: Settings
    database: Database
    jobs: JobCommands
    blobs: BlobStore
    stream: Stream
    registry: Registry
    buckets: TokenBuckets
    """Shared by all servers while Redis answers, of this process while it does not."""
    gate: AdmissionController
    credentials: CredentialCache
    passwords: PasswordHashing
    cache: TwoTierCache
    """``await cache.get(Entity.X, key, load)``; only for what the asker was found to be allowed."""
    languages: Languages
    desk: SubmitBatcher
    """Where submissions are handed in."""
    tail: EventFeed
    """Where events are heard, and ends waited for."""
    audience: SseConnections
    """Who watches: seats for event streams."""
    engine: ChainEngine
    """Starts and controls chain runs."""
    oidc: OidcProvider | None = None
    """Another provider that people may log in by."""
    checks: Mapping[str, Check] = field(default_factory=dict)
    """What must answer before the server counts as ready."""
    new_id: IdFactory = new_id

    @property
    def executors(self) -> ExecutorRegistry:
        """What a node of a chain may be."""
        return installed_executors()
