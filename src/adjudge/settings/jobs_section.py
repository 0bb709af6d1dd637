"""The section ``jobs``: leases and the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adjudge.settings.secret import RedisUrl
from adjudge.settings.setting import declare as _setting


@dataclass(frozen=True, slots=True)
class JobsSettings:
    """Leases of jobs, and the stream that delivers them to workers."""

    redis_url: RedisUrl = _setting(  # noqa: RUF009  # it is dataclasses.field
        RedisUrl(""),
        "redis:// or rediss://USER:PASSWORD@HOST:PORT/0; empty: in-process stream.",
        "REDIS_URL",
        allow_unprefixed=True,
    )
    lease_sec: float = _setting(
        15.0,
        "Lease duration in seconds; a job whose lease expires is run again.",
        "JOB_LEASE_SEC",
        allow_unprefixed=True,
        minimum=1,
        maximum=3600,
    )
    heartbeat_sec: float = _setting(
        4.0,
        "Interval in seconds between lease renewals; at most half of jobs.lease_sec.",
        "JOB_HEARTBEAT_SEC",
        allow_unprefixed=True,
        minimum=0.1,
    )
    reclaim_interval_sec: float = _setting(
        2.0,
        "Interval in seconds between checks for messages of lost workers.",
        "JOB_RECLAIM_INTERVAL_SEC",
        allow_unprefixed=True,
        minimum=0.1,
    )
    reclaim_count: int = _setting(
        16,
        "Maximum messages reclaimed per check.",
        "JOB_RECLAIM_COUNT",
        allow_unprefixed=True,
        minimum=1,
        maximum=10_000,
    )
    reclaim_grace_sec: float = _setting(
        2.0,
        "Seconds after lease expiry before a message is reclaimed.",
        "JOB_RECLAIM_GRACE_SEC",
        allow_unprefixed=True,
        minimum=0,
    )
    stream_consumer: str = _setting(
        "",
        "Consumer name of this worker in the Redis consumer group; must be unique; default: the worker name.",
        "JOB_STREAM_CONSUMER",
        allow_unprefixed=True,
        pattern=r"[A-Za-z0-9._:@-]{0,128}",
    )
    stream_group: str = _setting(
        "",
        "Redis consumer group of all workers; must be the same everywhere; empty: adjudge:ENVIRONMENT:workers.",
        "JOB_STREAM_GROUP",
        allow_unprefixed=True,
        pattern=r"[A-Za-z0-9._:@-]{0,128}",
    )
    redis_security: Literal["auto", "require", "allow"] = _setting(
        "auto",
        "Redis on another host without TLS or without a password: auto rejects it if server.environment is prod and "
        "warns otherwise, require always rejects it, allow accepts it silently.",
        "REDIS_SECURITY",
    )
    redis_timeout_sec: float = _setting(
        10.0, "Timeout of a Redis command in seconds.", "REDIS_TIMEOUT_SEC", minimum=0.1, maximum=600
    )
    stream_maxlen: int = _setting(
        200_000,
        "Approximate maximum length of each stream (XADD MAXLEN ~).",
        "JOB_STREAM_MAXLEN",
        allow_unprefixed=True,
        minimum=1000,
    )
    payload_ttl_sec: int = _setting(
        86_400,
        "Lifetime in seconds of message payloads in Redis.",
        "JOB_PAYLOAD_TTL_SEC",
        allow_unprefixed=True,
        minimum=60,
    )
    deadline_sec: int = _setting(
        6 * 3600,
        "Maximum duration in seconds of one attempt of any job; most kinds have a shorter deadline of their own.",
        "JOB_DEADLINE_SEC",
        minimum=1,
    )
    outbox_enabled: bool = _setting(
        True,
        "Dispatch jobs only from schedulers; off: every process also dispatches its own jobs (debugging only).",
        "OUTBOX_ENABLED",
        allow_unprefixed=True,
    )
