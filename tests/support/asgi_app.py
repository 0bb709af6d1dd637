"""A server in the test's own process: the real application on a real store, called over ASGI."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher
from fastapi import FastAPI

from adjudge import settings as settings_source
from adjudge.api.container import Services
from adjudge.api.sse import SseConnections
from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.cache.token_buckets import MemoryTokenBuckets
from adjudge.cache.two_tier import open_cache
from adjudge.chains.engine import ChainEngine
from adjudge.cli.wiring.services import compose_services
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import ALL_SCOPES
from adjudge.executors.wakeups import WAIT_PROBES, fire_chain_finished
from adjudge.judge.languages import Languages
from adjudge.registry.database import DatabaseRegistry
from adjudge.services.admission import AdmissionController, LoadSampler
from adjudge.services.ccs_feed_watcher import FeedWatcher
from adjudge.services.event_feed import EventFeed
from adjudge.services.passwords import PasswordHashing
from adjudge.services.scoreboard_feed import ScoreboardFeed
from adjudge.services.scoreboard_rows import encode_change
from adjudge.services.system_metrics import SystemMetrics
from adjudge.services.viewer import CredentialCache
from adjudge.store.accounts import api_tokens, users
from adjudge.stream import MemoryStream
from tests.support.shared_routes import create_shared_app
from tests.support.store_harness import StoreHarness

_WITHOUT_WORKERS: dict[str, object] = {"admission.health_gate": False, "admission.user_per_sec": 0.0}
"""Most tests have no online worker and send more requests per second than the default limits allow."""
_QUICK_HASHES = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@asynccontextmanager
async def make_services(
    store: StoreHarness, folder: Path, overrides: dict[str, object] | None = None
) -> AsyncIterator[Services]:
    """The services on ``store``; ``overrides`` are settings by ``section.key``."""
    own = {"server.data_dir": str(folder / "data")}
    settings = settings_source.load(_WITHOUT_WORKERS | own | (overrides or {}), environ={})
    overlay = settings.judge.languages_file
    blobs, stream = DirectoryBlobStore(folder / "blobs"), MemoryStream(maxlen=10_000)
    registry = DatabaseRegistry(store.database, lease_sec=15)
    buckets = MemoryTokenBuckets()
    sampler = LoadSampler(store.database, registry, count_to=settings.admission.high_watermark + 1)
    admission = AdmissionController(settings.admission, store.database, buckets, sampler)
    feed = EventFeed(store.database)
    scoreboard_feed, feed_watcher = ScoreboardFeed(store.database, encode_change), FeedWatcher(store.database)
    idle_us = round(settings.accounts.session_idle_hours * 3_600_000_000)
    credentials = CredentialCache(store.database, cache_sec=3, session_idle_us=idle_us)
    system = SystemMetrics(store.database, stream, registry, valid_sec=0, local_sec=0)
    server = settings.server
    connections = SseConnections(credentials, per_user=server.streams_per_user, most=server.streams_most, look_sec=0.05)
    try:
        async with open_cache(store.database, settings.jobs.redis_url.reveal(), settings.server.environment) as cache:
            yield compose_services(
                settings,
                store.database,
                jobs=store.jobs,
                engine=ChainEngine(probes=WAIT_PROBES, on_run_ended=[fire_chain_finished]),
                blobs=blobs,
                cache=cache,
                registry=registry,
                languages=Languages.load(overlay=Path(overlay) if overlay else None),
                buckets=buckets,
                admission=admission,
                credentials=credentials,
                passwords=PasswordHashing(_QUICK_HASHES),
                feed=feed,
                scoreboard_feed=scoreboard_feed,
                feed_watcher=feed_watcher,
                connections=connections,
                checks={},
                system_metrics=system,
            )
    finally:
        await connections.close()
        await feed.close()
        await scoreboard_feed.close()
        await feed_watcher.close()
        await credentials.close()
        await admission.close()
        await system.close()
        await registry.close()
        await stream.close()
        await blobs.close()


@dataclass
class AsgiApp:
    """The application, and clients of it."""

    app: FastAPI
    services: Services
    store: StoreHarness

    async def user(
        self, role: str, name: str | None = None, *, scopes: tuple[str, ...] = (ALL_SCOPES,)
    ) -> tuple[str, str]:
        """Create a user with a token; return the user's id and the token."""
        user_id, secret = new_id(), api_tokens.new_secret()
        await self.store.transact(
            lambda tx: users.insert(tx, users.NewUser(user_id, name or f"{role}-{user_id[-6:]}", role=role))
        )
        await self.store.transact(
            lambda tx: api_tokens.insert(tx, api_tokens.NewApiToken(new_id(), user_id, "test", secret, scopes))
        )
        return user_id, secret

    @asynccontextmanager
    async def client(self, token: str | None = None, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
        """A client that sends ``token`` with every request; without one, a visitor."""
        headers = options.pop("headers", {}) | ({"Authorization": f"Bearer {token}"} if token else {})
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://adjudge", headers=headers, **options) as it:
            yield it

    @asynccontextmanager
    async def as_role(self, role: str) -> AsyncIterator[httpx.AsyncClient]:
        """A client of a new user with ``role``."""
        _, secret = await self.user(role)
        async with self.client(secret) as client:
            yield client


@asynccontextmanager
async def make_app(
    store: StoreHarness, folder: Path, overrides: dict[str, object] | None = None
) -> AsyncIterator[AsgiApp]:
    """The whole application around ``store``."""
    async with make_services(store, folder, overrides) as services:
        with create_shared_app(services) as app:
            yield AsgiApp(app, services, store)
