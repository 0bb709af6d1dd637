"""The settings of jobs: leases, and the stream that tells workers of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adjudge.settings.knob import declare as _knob
from adjudge.settings.secret import RedisUrl


@dataclass(frozen=True, slots=True)
class Jobs:
    """Leases and the stream that drives workers."""

    redis_url: RedisUrl = _knob(  # noqa: RUF009  # it is dataclasses.field
        RedisUrl(""),
        "redis:// or rediss://USER:PASSWORD@HOST:PORT/0; empty: in-process stream.",
        "REDIS_URL",
        bare=True,
    )
    lease_sec: float = _knob(
        15.0,
        "Lease duration in seconds; a job whose lease expires is run again.",
        "JOB_LEASE_SEC",
        bare=True,
        least=1,
        most=3600,
    )
    heartbeat_sec: float = _knob(
        4.0,
        "Interval in seconds between lease renewals; at most half of jobs.lease_sec.",
        "JOB_HEARTBEAT_SEC",
        bare=True,
        least=0.1,
    )
    reclaim_interval_sec: float = _knob(
        2.0,
        "Interval in seconds between checks for messages of lost workers.",
        "JOB_RECLAIM_INTERVAL_SEC",
        bare=True,
        least=0.1,
    )
    reclaim_count: int = _knob(
        16, "Maximum messages reclaimed per check.", "JOB_RECLAIM_COUNT", bare=True, least=1, most=10_000
    )
    reclaim_grace_sec: float = _knob(
        2.0, "Seconds after lease expiry before a message is reclaimed.", "JOB_RECLAIM_GRACE_SEC", bare=True, least=0
    )
    stream_consumer: str = _knob(
        "",
        "Consumer name of this worker in the Redis consumer group; must be unique; default: the worker name.",
        "JOB_STREAM_CONSUMER",
        bare=True,
        pattern=r"[A-Za-z0-9._:@-]{0,128}",
    )
    stream_group: str = _knob(
        "",
        "The consumer group that all workers share, the same for every process; empty: adjudge:ENVIRONMENT:workers.",
        "JOB_STREAM_GROUP",
        bare=True,
        pattern=r"[A-Za-z0-9._:@-]{0,128}",
    )
    redis_security: Literal["auto", "require", "allow"] = _knob(
        "auto",
        "Redis on another machine without TLS or without a password: auto refuses it where the environment is prod and "
        "warns elsewhere, require refuses it everywhere, allow says nothing.",
        "REDIS_SECURITY",
    )
    redis_timeout_sec: float = _knob(
        10.0, "How long Redis may take to answer a command.", "REDIS_TIMEOUT_SEC", least=0.1, most=600
    )
    stream_maxlen: int = _knob(
        200_000,
        "Approximate maximum length of each stream (XADD MAXLEN ~).",
        "JOB_STREAM_MAXLEN",
        bare=True,
        least=1000,
    )
    payload_ttl_sec: int = _knob(
        86_400, "Lifetime in seconds of message payloads in Redis.", "JOB_PAYLOAD_TTL_SEC", bare=True, least=60
    )
    outbox_enabled: bool = _knob(
        True,
        "Dispatch jobs only from schedulers; off: every process also dispatches its own jobs (debugging only).",
        "OUTBOX_ENABLED",
        bare=True,
    )
