"""The declarations: every knob with its type, default, bounds and purpose.

To add one, add a field to its section; reading, refusing, printing and documenting follow from the declaration.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from adjudge.domain.retry import RetryPolicy
from adjudge.settings.secret import DatabaseUrl, RedisUrl, Secret

PREFIX: Final = "ADJUDGE_"
_RETRY: Final = RetryPolicy()


@dataclass(frozen=True, slots=True)
class Knob:
    """What is known of one setting besides its type and default."""

    purpose: str
    variable: str
    """Its name in the environment, without ``ADJUDGE_``."""
    bare: bool = False
    """Whether the environment may also name it without the prefix."""
    least: float = -math.inf
    most: float = math.inf
    pattern: str = ""


def _knob(default: object, purpose: str, variable: str, **rules: Any) -> Any:
    return dataclasses.field(default=default, metadata={"knob": Knob(purpose, variable, **rules)})


def variables(knob: Knob) -> tuple[str, ...]:
    """Name a knob as the environment does, the stronger name first."""
    return (PREFIX + knob.variable, knob.variable) if knob.bare else (PREFIX + knob.variable,)


@dataclass(frozen=True, slots=True)
class Server:
    """The process itself: where it listens, where its files are."""

    environment: str = _knob(
        "dev",
        "Name of this installation; streams and groups are scoped by it.",
        "ENVIRONMENT",
        pattern=r"[a-z0-9][a-z0-9-]{0,31}",
    )
    data_dir: Path = _knob(  # noqa: RUF009  # it is dataclasses.field
        Path("var"), "Folder for the database file and the blobs of embedded mode.", "DATA_DIR"
    )
    host: str = _knob("127.0.0.1", "Address to listen on; 0.0.0.0 for all.", "HOST", pattern=r"\S+")
    port: int = _knob(8080, "Port to listen on; 0 picks a free one.", "PORT", least=0, most=65535)


@dataclass(frozen=True, slots=True)
class Database:
    """The truth."""

    url: DatabaseUrl = _knob(  # noqa: RUF009  # it is dataclasses.field
        DatabaseUrl(""),
        "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME; by default a file in the data folder.",
        "DATABASE_URL",
    )


@dataclass(frozen=True, slots=True)
class Jobs:
    """Leases and the stream that drives workers."""

    redis_url: RedisUrl = _knob(  # noqa: RUF009  # it is dataclasses.field
        RedisUrl(""),
        "redis:// or rediss://USER:PASSWORD@HOST:PORT/0 of the stream; empty: a stream within the process.",
        "REDIS_URL",
        bare=True,
    )
    lease_sec: float = _knob(
        15.0, "How long a claim holds without a heartbeat.", "JOB_LEASE_SEC", bare=True, least=1, most=3600
    )
    heartbeat_sec: float = _knob(
        4.0,
        "How often a worker renews its lease; at most half of the lease.",
        "JOB_HEARTBEAT_SEC",
        bare=True,
        least=0.1,
    )
    reclaim_interval_sec: float = _knob(
        2.0, "How often workers look for jobs of silent workers.", "JOB_RECLAIM_INTERVAL_SEC", bare=True, least=0.1
    )
    reclaim_count: int = _knob(
        16, "How many messages one look may take over.", "JOB_RECLAIM_COUNT", bare=True, least=1, most=10_000
    )
    reclaim_grace_sec: float = _knob(
        2.0, "How long past its lease a job is left alone.", "JOB_RECLAIM_GRACE_SEC", bare=True, least=0
    )
    stream_maxlen: int = _knob(
        200_000, "About how many messages a stream keeps.", "JOB_STREAM_MAXLEN", bare=True, least=1000
    )
    payload_ttl_sec: int = _knob(
        86_400, "How long a message's payload is kept.", "JOB_PAYLOAD_TTL_SEC", bare=True, least=60
    )
    outbox_enabled: bool = _knob(
        True,
        "Whether jobs reach workers through the outbox; off only to debug delivery.",
        "OUTBOX_ENABLED",
        bare=True,
    )


@dataclass(frozen=True, slots=True)
class Files:
    """Where files are kept: S3 where a bucket is named, else a folder in the data folder."""

    s3_bucket: str = _knob("", "The bucket; empty: a folder of this machine.", "S3_BUCKET")
    s3_prefix: str = _knob("blobs", "What the names of our objects begin with.", "S3_PREFIX")
    s3_endpoint: str = _knob("", "https://HOST:PORT of anything but AWS.", "S3_ENDPOINT")
    s3_region: str = _knob("us-east-1", "The bucket's region.", "S3_REGION")
    s3_access_key_id: str = _knob("", "Who we are to S3; empty: as the machine is set up.", "S3_ACCESS_KEY_ID")
    s3_secret_access_key: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "The key that proves it.", "S3_SECRET_ACCESS_KEY"
    )


@dataclass(frozen=True, slots=True)
class Worker:
    """How much a worker does at once."""

    name: str = _knob("", "Its name; empty: hostname-pid.", "WORKER_ID", bare=True, pattern=r"[A-Za-z0-9._:@-]{0,128}")
    slots: int = _knob(
        0, "How many submissions it judges at once; 0: as many as there are cores.", "WORKER_SLOTS", least=0
    )
    pin_cpus: bool = _knob(
        False,
        "Whether each slot keeps to a core of its own: steadier times, where nothing else runs.",
        "WORKER_PIN_CPUS",
    )
    drain_sec: float = _knob(
        30.0, "How long it may finish what runs once it is asked to end.", "WORKER_DRAIN_SEC", least=0
    )
    etcd_endpoints: str = _knob(
        "", "http://HOST:2379, several with commas: workers are listed there; empty: in the database.", "ETCD_ENDPOINTS"
    )
    cache_dir: Path = _knob(  # noqa: RUF009  # it is dataclasses.field
        Path("~/.cache/adjudge/blobs"), "Folder for test data that it has fetched.", "WORKER_CACHE_DIR"
    )
    cache_bytes: int = _knob(
        4 * 1024**3, "How much of it is kept; the longest unused goes first.", "WORKER_CACHE_BYTES", least=0
    )


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how soon a failure of ours is tried again."""

    max_retries: int = _knob(_RETRY.max_retries, "Attempts after the first.", "RETRY_MAX_RETRIES", least=0, most=100)
    base_ms: int = _knob(
        _RETRY.base_ms, "Wait before the first retry; each later one doubles.", "RETRY_BASE_MS", least=1
    )
    cap_ms: int = _knob(_RETRY.cap_ms, "The longest wait.", "RETRY_CAP_MS", least=1)

    def policy(self) -> RetryPolicy:
        """Make of these knobs the rule that the rest of the system understands."""
        return RetryPolicy(max_retries=self.max_retries, base_ms=self.base_ms, cap_ms=self.cap_ms)


@dataclass(frozen=True, slots=True)
class Judge:
    """How submissions are judged, and what is kept of it."""

    cache_dir: Path = _knob(  # noqa: RUF009  # it is dataclasses.field
        Path("~/.cache/adjudge/compiled"), "Folder for compiled programs.", "JUDGE_CACHE_DIR"
    )
    cache_bytes: int = _knob(
        2 * 1024**3, "How much compiled programs may take; the longest unused go first.", "JUDGE_CACHE_BYTES", least=0
    )
    time_margin: float = _knob(
        0.1,
        "A run that ends by itself this part over its time limit is repeated alone before it is believed.",
        "JUDGE_TIME_MARGIN",
        least=0,
        most=10,
    )
    stdout_limit_bytes: int = _knob(
        262_144,
        "How much of a program's standard output is kept.",
        "JUDGE_STDOUT_LIMIT_BYTES",
        bare=True,
        least=1024,
    )
    stderr_limit_bytes: int = _knob(
        1_048_576,
        "How much of a program's standard error is kept.",
        "JUDGE_STDERR_LIMIT_BYTES",
        bare=True,
        least=1024,
    )


@dataclass(frozen=True, slots=True)
class Log:
    """What is logged, and how it looks."""

    level: Literal["debug", "info", "warning", "error"] = _knob("info", "Least severity that is logged.", "LOG_LEVEL")
    format: Literal["console", "json"] = _knob("console", "console for people, json for machines.", "LOG_FORMAT")


SECTIONS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "server": Server,
        "database": Database,
        "jobs": Jobs,
        "files": Files,
        "worker": Worker,
        "retry": Retry,
        "judge": Judge,
        "log": Log,
    }
)


def declared() -> Iterator[tuple[str, object, Knob]]:
    """``section.key``, default and description of every knob."""
    for section, model in SECTIONS.items():
        for item in dataclasses.fields(model):
            yield f"{section}.{item.name}", item.default, item.metadata["knob"]
