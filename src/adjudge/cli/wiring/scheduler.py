"""Composes the scheduler: dispatcher, watchdog, reconciler, retention, chain housekeeping, contests and triggers."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adjudge.chains.housekeeping import ChainHousekeeping, HousekeepingOptions
from adjudge.chains.triggers import TriggerScheduler
from adjudge.cli.wiring.chains import make_engine, run_starter
from adjudge.cli.wiring.drivers import open_blobs
from adjudge.cli.wiring.jobs import make_jobs
from adjudge.cli.wiring.judge import load_languages
from adjudge.cli.wiring.mail import alert_recipients
from adjudge.cli.wiring.process import registered
from adjudge.observe.health_server import LoopHeartbeat
from adjudge.registry import ProcessRole
from adjudge.relay.contest_announcer import ContestAnnouncer
from adjudge.relay.contest_feed import ContestFeedWriter
from adjudge.relay.dispatcher import Dispatcher, dispatch_inline
from adjudge.relay.judging_pauses import JudgingPauses
from adjudge.relay.operational_alerts import OperationalAlerts
from adjudge.relay.periodic import run_periodically
from adjudge.relay.rating_updater import RatingUpdater
from adjudge.relay.reconciler import Reconciler
from adjudge.relay.retention import Retention, RetentionOptions
from adjudge.relay.watchdog import Watchdog
from adjudge.services.ccs_feed_source import CcsFeedSource
from adjudge.services.image_info import ImageInfoCache
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.stream import Stream

_RECONCILE_MS = 5_000
_CONTESTS_MS = 1_000
_RATINGS_MS = 10_000
_ALERTS_MS = 5_000
_AHEAD = 4_000
_RETENTION_MS = 60_000
_CHAINS_MS = 500
"""Resolution of chain timers."""


@asynccontextmanager
async def inline_dispatch(settings: Settings, database: Database, stream: Stream) -> AsyncIterator[None]:
    """Publish jobs from this process while the block runs, if the outbox is disabled."""
    if settings.jobs.outbox_enabled:
        yield
        return
    name = f"direct-{socket.gethostname()}-{os.getpid()}"
    async with dispatch_inline(
        Dispatcher(database, JobCommands({}), stream, name=name, ahead=_prefetch_limit(settings))
    ):
        yield


async def run_scheduler(
    settings: Settings, database: Database, stream: Stream, name: str, heartbeat: LoopHeartbeat | None = None
) -> None:
    """Run all periodic tasks of a scheduler until canceled."""
    engine = make_engine(settings)
    jobs = make_jobs(settings, engine)
    watchdog, reconciler = Watchdog(database, jobs, name=name), Reconciler(database, jobs, stream, name=name)
    interval_ms = round(settings.jobs.reclaim_interval_sec * 1_000)
    async with (
        registered(settings, database, ProcessRole.SCHEDULER),
        open_blobs(settings) as blobs,
        asyncio.TaskGroup() as roles,
    ):
        roles.create_task(
            Dispatcher(database, jobs, stream, name=name, heartbeat=heartbeat, ahead=_prefetch_limit(settings)).run()
        )
        roles.create_task(run_periodically(watchdog.run_once, interval_ms=interval_ms))
        roles.create_task(run_periodically(reconciler.run_once, interval_ms=_RECONCILE_MS))
        retention = Retention(database, _retention(settings))
        roles.create_task(run_periodically(retention.run_once, interval_ms=_RETENTION_MS))
        chains = ChainHousekeeping(database, jobs, engine, name=name, settings=_chain_housekeeping(settings))
        roles.create_task(run_periodically(chains.run_once, interval_ms=_CHAINS_MS))
        pauses = JudgingPauses(database, jobs, name=name)
        roles.create_task(run_periodically(pauses.run_once, interval_ms=_CONTESTS_MS))
        roles.create_task(run_periodically(ContestAnnouncer(database).run_once, interval_ms=_CONTESTS_MS))
        roles.create_task(run_periodically(RatingUpdater(database).run_once, interval_ms=_RATINGS_MS))
        source = CcsFeedSource(load_languages(), ImageInfoCache(blobs))
        roles.create_task(ContestFeedWriter(database, source).run())
        alerts = OperationalAlerts(
            database,
            recipients=alert_recipients(settings),
            interval_ms=settings.mail.alert_interval_sec * 1_000,
            public_url=settings.server.public_url,
        )
        roles.create_task(run_periodically(alerts.run_once, interval_ms=_ALERTS_MS))
        roles.create_task(TriggerScheduler(database, run_starter(engine), name=name).run())


def _prefetch_limit(settings: Settings) -> int:
    """Maximum number of published messages per band, far below the length at which the stream drops old messages."""
    return min(_AHEAD, settings.jobs.stream_maxlen // 2)


def _chain_housekeeping(settings: Settings) -> HousekeepingOptions:
    chains = settings.chains
    return HousekeepingOptions(
        stop_grace_ms=round(chains.stop_grace_sec * 1_000), retention_ms=_days_ms(chains.keep_days)
    )


def _retention(settings: Settings) -> RetentionOptions:
    kept = settings.retention
    return RetentionOptions(
        deliveries_ms=settings.webhooks.keep_sec * 1_000,
        mails_ms=settings.mail.keep_sec * 1_000,
        history_ms=_days_ms(kept.history_days),
        audit_ms=_days_ms(kept.audit_days),
        imports_ms=_days_ms(kept.imports_days),
        tokens_ms=_days_ms(kept.tokens_days),
        dead_letters_ms=_days_ms(kept.dead_letters_days),
    )


def _days_ms(days: float) -> int | None:
    """Days in milliseconds; None for 0, which means unlimited."""
    return round(days * 86_400_000) or None
