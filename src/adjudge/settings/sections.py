"""The declarations: every knob with its type, default, bounds and purpose.

To add one, add a field to its section; reading, refusing, printing and documenting follow from the declaration.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from adjudge.domain.retry import RetryPolicy
from adjudge.settings.chain_knobs import Chains
from adjudge.settings.job_knobs import Jobs
from adjudge.settings.knob import Knob
from adjudge.settings.knob import declare as _knob
from adjudge.settings.secret import DatabaseUrl, Secret

_RETRY: Final = RetryPolicy()


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The process itself: where it listens, where its files are."""

    environment: str = _knob(
        "dev",
        "Name of this installation; prefixes Redis keys, streams and consumer groups.",
        "ENVIRONMENT",
        pattern=r"[a-z0-9][a-z0-9-]{0,31}",
    )
    data_dir: Path = _knob(  # noqa: RUF009  # it is dataclasses.field
        Path("var"), "Directory of the SQLite database and the blob store in embedded mode.", "DATA_DIR"
    )
    host: str = _knob("127.0.0.1", "Address to listen on; 0.0.0.0 for all interfaces.", "HOST", pattern=r"\S+")
    metrics_port: int = _knob(
        0,
        "Port on 127.0.0.1 for /metrics and /health/live of workers and schedulers; 0 disables it.",
        "METRICS_PORT",
        least=0,
        most=65535,
    )
    port: int = _knob(8080, "Port to listen on; 0 picks a free port.", "PORT", least=0, most=65535)
    public_url: str = _knob(
        "",
        "External base URL (https://HOST) when behind a reverse proxy; empty: taken from each request.",
        "PUBLIC_URL",
        pattern=r"(https?://[^/\s]+)?",
    )
    trusted_proxies: str = _knob(
        "",
        "Comma-separated proxy addresses whose X-Forwarded-For and X-Forwarded-Proto headers are trusted; empty: none.",
        "TRUSTED_PROXIES",
    )
    body_limit_bytes: int = _knob(
        8 * 1024**2, "Maximum request body size in bytes, except uploads.", "BODY_LIMIT_BYTES", least=1024
    )
    anonymous_body_limit_bytes: int = _knob(
        65536, "The largest body without a valid token or session.", "ANONYMOUS_BODY_LIMIT_BYTES", least=1024
    )
    upload_limit_bytes: int = _knob(
        512 * 1024**2, "Maximum size of an uploaded problem package in bytes.", "UPLOAD_LIMIT_BYTES", least=1024
    )
    head_timeout_sec: float = _knob(
        10.0, "How long a client may take to send a request's headers.", "HEAD_TIMEOUT_SEC", least=0.1
    )
    request_timeout_sec: float = _knob(
        30.0,
        "Request timeout in seconds; event streams and ?wait= requests have their own.",
        "REQUEST_TIMEOUT_SEC",
        least=1,
    )
    shutdown_sec: float = _knob(
        10.0, "Grace period in seconds for requests in progress at shutdown.", "SHUTDOWN_SEC", least=0
    )
    streams_per_user: int = _knob(100, "Maximum open event streams per user and server.", "STREAMS_PER_USER", least=1)
    streams_most: int = _knob(10_000, "Maximum open event streams per server.", "STREAMS_MOST", least=1)
    cors_origins: str = _knob(
        "", "Comma-separated origins allowed to call the API with a token; * for all; empty: none.", "CORS_ORIGINS"
    )
    metrics_access: Literal["loopback", "token", "open"] = _knob(
        "loopback",
        "Who may read /metrics besides holders of ops:read: loopback (local requests without a "
        "proxy), token (nobody else) or open (everybody).",
        "METRICS_ACCESS",
    )


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The truth."""

    url: DatabaseUrl = _knob(  # noqa: RUF009  # it is dataclasses.field
        DatabaseUrl(""),
        "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME; default: a SQLite file in the data directory.",
        "DATABASE_URL",
    )
    timeout_sec: float = _knob(
        30.0,
        "How long a transaction of PostgreSQL may take; a connection that has not answered by then is given up.",
        "DATABASE_TIMEOUT_SEC",
        least=1,
        most=3600,
    )


@dataclass(frozen=True, slots=True)
class FilesSettings:
    """Where files are kept: S3 where a bucket is named, else a folder in the data folder."""

    s3_bucket: str = _knob("", "S3 bucket; empty: a local directory.", "S3_BUCKET")
    s3_prefix: str = _knob("blobs", "Key prefix of all objects.", "S3_PREFIX")
    s3_endpoint: str = _knob("", "https://HOST:PORT of an S3-compatible service; empty: AWS.", "S3_ENDPOINT")
    s3_region: str = _knob("us-east-1", "Region of the bucket.", "S3_REGION")
    s3_access_key_id: str = _knob("", "S3 access key id; empty: the machine's default credentials.", "S3_ACCESS_KEY_ID")
    s3_timeout_sec: float = _knob(
        60.0, "How long one request to S3 may take; a part of a large file is one.", "S3_TIMEOUT_SEC", least=1
    )
    s3_secret_access_key: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "S3 secret access key.", "S3_SECRET_ACCESS_KEY"
    )


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How much a worker does at once."""

    name: str = _knob(
        "",
        "Worker name; must be unique; default: hostname-pid.",
        "WORKER_ID",
        bare=True,
        pattern=r"[A-Za-z0-9._:@-]{0,128}",
    )
    slots: int = _knob(0, "Number of jobs run concurrently; 0: number of CPU cores.", "WORKER_SLOTS", least=0)
    pin_cpus: bool = _knob(
        False,
        "Pin each slot to one CPU core; more stable timings on dedicated machines.",
        "WORKER_PIN_CPUS",
    )
    limits: str = _knob(
        "",
        "How many jobs of a language, kind or node type it runs at once: language:java=1, kind:node=4, node:http=2.",
        "WORKER_LIMITS",
        pattern=r"((language|kind|node):[A-Za-z0-9._+-]+ *= *[1-9][0-9]{0,3}( *, *|$))*",
    )
    executions_beside_judging: bool = _knob(
        False,
        "Whether executions run while submissions are judged in the same process. Programs that run at once can "
        "signal to each other by the load they cause: with this on, a submission can tell its secret tests to an "
        "execution of the same user.",
        "WORKER_EXECUTIONS_BESIDE_JUDGING",
    )
    rate_per_sec: float = _knob(
        0.0,
        "Maximum job starts per second over all workers that share a Redis; 0: unlimited.",
        "WORKER_RATE_PER_SEC",
        least=0,
    )
    drain_sec: float = _knob(30.0, "Grace period in seconds for running jobs at shutdown.", "WORKER_DRAIN_SEC", least=0)
    etcd_endpoints: str = _knob(
        "",
        "Comma-separated etcd endpoints (http://HOST:2379) of the worker registry; empty: the database.",
        "ETCD_ENDPOINTS",
    )
    etcd_user: str = _knob("", "etcd user name; empty: no authentication.", "ETCD_USER")
    etcd_password: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "etcd password.", "ETCD_PASSWORD"
    )
    cache_dir: Path = _knob(  # noqa: RUF009  # it is dataclasses.field
        Path("~/.cache/adjudge/blobs"), "Directory of cached test data.", "WORKER_CACHE_DIR"
    )
    cache_bytes: int = _knob(
        4 * 1024**3, "Maximum size of cached test data in bytes (LRU eviction).", "WORKER_CACHE_BYTES", least=0
    )


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often and how soon a failure of ours is tried again."""

    max_retries: int = _knob(
        _RETRY.max_retries, "Maximum retries after the first attempt.", "RETRY_MAX_RETRIES", least=0, most=100
    )
    base_ms: int = _knob(
        _RETRY.base_ms,
        "Delay before the first retry in milliseconds; doubles with each retry.",
        "RETRY_BASE_MS",
        least=1,
    )
    cap_ms: int = _knob(_RETRY.cap_ms, "Maximum retry delay in milliseconds.", "RETRY_CAP_MS", least=1)

    def policy(self) -> RetryPolicy:
        """Make of these knobs the rule that the rest of the system understands."""
        return RetryPolicy(max_retries=self.max_retries, base_ms=self.base_ms, cap_ms=self.cap_ms)


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How submissions are judged, and what is kept of it."""

    cache_dir: Path = _knob(  # noqa: RUF009  # it is dataclasses.field
        Path("~/.cache/adjudge/compiled"), "Directory of cached compiled programs.", "JUDGE_CACHE_DIR"
    )
    cache_bytes: int = _knob(
        2 * 1024**3,
        "How much compiled programs may take, at every moment; the longest unused go first. 0: none are kept.",
        "JUDGE_CACHE_BYTES",
        least=0,
    )
    languages_file: str = _knob(
        "",
        "A TOML file with tables as in languages.toml: changes languages, such as their time_factor, and adds others.",
        "JUDGE_LANGUAGES_FILE",
    )
    artifact_bytes: int = _knob(
        128 * 1024**2,
        "The largest compiled program; a larger one is a compile error.",
        "JUDGE_ARTIFACT_BYTES",
        least=1024**2,
        most=1024**3,
    )
    compilations: int = _knob(
        0,
        "How many compilations a worker runs at once, within its slots; 0: half as many as there are cores.",
        "JUDGE_COMPILATIONS",
        least=0,
        most=1000,
    )
    time_margin: float = _knob(
        0.1,
        "Fraction of the time limit within which a time-limit overrun is run again, alone, before TLE is given.",
        "JUDGE_TIME_MARGIN",
        least=0,
        most=10,
    )
    stdout_limit_bytes: int = _knob(
        262_144,
        "Maximum captured standard output in bytes.",
        "JUDGE_STDOUT_LIMIT_BYTES",
        bare=True,
        least=1024,
    )
    stderr_limit_bytes: int = _knob(
        1_048_576,
        "Maximum captured standard error in bytes.",
        "JUDGE_STDERR_LIMIT_BYTES",
        bare=True,
        least=1024,
    )
    use_agent: bool = _knob(
        True,
        "Whether each slot keeps an agent that starts programs; off: one process is started for every run, which takes "
        "ten times as long.",
        "JUDGE_USE_AGENT",
    )
    allow_without_cgroup: bool = _knob(
        False,
        "Whether programs run where no cgroup can be used. There, nothing limits shared memory, socket buffers and the "
        "CPU time of children that nobody waits for: only for programs that you trust.",
        "JUDGE_ALLOW_WITHOUT_CGROUP",
    )


@dataclass(frozen=True, slots=True)
class AccountsSettings:
    """People and programs: how they get in."""

    registration: Literal["open", "invitation", "closed"] = _knob(
        "invitation", "Who may register: open (anybody), invitation (with a code) or closed (nobody).", "REGISTRATION"
    )
    visitors_may_read: bool = _knob(
        True, "Show published problems to users who are not logged in.", "VISITORS_MAY_READ"
    )
    password_min_length: int = _knob(10, "Minimum password length.", "PASSWORD_MIN_LENGTH", least=6, most=128)
    session_idle_hours: float = _knob(72.0, "Idle timeout of sessions in hours.", "SESSION_IDLE_HOURS", least=0.1)
    session_max_hours: float = _knob(720.0, "Maximum session lifetime in hours.", "SESSION_MAX_HOURS", least=0.1)
    login_per_min: float = _knob(
        10.0,
        "Maximum login attempts per minute and user name; three times as many per IP address.",
        "LOGIN_PER_MIN",
        least=0.1,
    )
    credential_cache_sec: float = _knob(
        3.0,
        "Seconds for which tokens and sessions are cached; a revocation on another server takes "
        "effect after at most this time.",
        "CREDENTIAL_CACHE_SEC",
        least=0,
        most=5,
    )
    oidc_issuer: str = _knob("", "Issuer URL of the OpenID Connect provider; empty: disabled.", "OIDC_ISSUER")
    oidc_client_id: str = _knob("", "OpenID Connect client id.", "OIDC_CLIENT_ID")
    oidc_client_secret: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "OpenID Connect client secret; empty for a public client.", "OIDC_CLIENT_SECRET"
    )
    oidc_label: str = _knob("Single sign-on", "Label of the single sign-on button.", "OIDC_LABEL")
    oidc_registration: bool = _knob(True, "Create an account at the first single sign-on.", "OIDC_REGISTRATION")


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """What is let in. Whoever holds submission:unlimited has no rate, quota or cap; 0 switches a limit off."""

    user_per_sec: float = _knob(1.0, "Sustained submissions per second and user.", "ADMISSION_USER_PER_SEC", least=0)
    user_burst: int = _knob(20, "Burst size of admission.user_per_sec.", "ADMISSION_USER_BURST", least=1)
    address_per_sec: float = _knob(
        20.0, "Sustained submissions per second and IP address.", "ADMISSION_ADDRESS_PER_SEC", least=0
    )
    address_burst: int = _knob(200, "Burst size of admission.user_per_sec.", "ADMISSION_ADDRESS_BURST", least=1)
    daily_quota: int = _knob(1000, "Maximum submissions per user and UTC day.", "ADMISSION_DAILY_QUOTA", least=0)
    in_flight: int = _knob(20, "Maximum unfinished submissions per user.", "ADMISSION_IN_FLIGHT", least=0)
    high_watermark: int = _knob(
        20_000,
        "Queue length at which new submissions are rejected (admins excepted).",
        "ADMISSION_HIGH_WATERMARK",
        least=0,
    )
    low_watermark: int = _knob(
        15_000,
        "Queue length at which submissions are accepted again; at most the high watermark.",
        "ADMISSION_LOW_WATERMARK",
        least=0,
    )
    overload: Literal["refuse", "accept_later"] = _knob(
        "refuse",
        "Above the high watermark: refuse (429) or accept_later (202 with delayed dispatch).",
        "ADMISSION_OVERLOAD",
    )
    later_sec: int = _knob(
        30,
        "Dispatch delay of accept_later, and the Retry-After value, in seconds.",
        "ADMISSION_LATER_SEC",
        least=1,
        most=3600,
    )
    health_gate: bool = _knob(
        True, "Reject submissions in a language that no live worker supports.", "ADMISSION_HEALTH_GATE"
    )


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """What a server remembers of the database; beside it Redis remembers for all servers, where there is Redis."""

    entries: int = _knob(
        20_000, "Maximum number of entries in the in-process cache (LRU eviction).", "CACHE_ENTRIES", least=1
    )
    bytes: int = _knob(64 * 1024**2, "Maximum size of the in-process cache in bytes.", "CACHE_BYTES", least=0)


@dataclass(frozen=True, slots=True)
class ExecutionsSettings:
    """Programs that are run without a problem."""

    cpu_ms: int = _knob(10_000, "Maximum CPU time per run in milliseconds.", "EXECUTIONS_CPU_MS", least=1)
    memory_mib: int = _knob(1024, "Maximum memory per run in MiB.", "EXECUTIONS_MEMORY_MIB", least=16)
    inputs: int = _knob(100, "Maximum inputs per request.", "EXECUTIONS_INPUTS", least=1, most=1000)
    total_sec: int = _knob(
        600, "Maximum wall time of one execution over all inputs in seconds.", "EXECUTIONS_TOTAL_SEC", least=1
    )
    output_bytes: int = _knob(
        4 * 1024**2,
        "How much of its outputs is kept of one execution, all inputs together; the rest is cut.",
        "EXECUTIONS_OUTPUT_BYTES",
        least=1024,
    )
    user_bytes: int = _knob(
        256 * 1024**2,
        "How much may be kept of one user's executions, inputs and outputs; 0: any amount. Whoever holds "
        "submission:unlimited has no bound.",
        "EXECUTIONS_USER_BYTES",
        least=0,
    )
    keep_sec: int = _knob(86_400, "Retention of executions in seconds.", "EXECUTIONS_KEEP_SEC", least=60)


@dataclass(frozen=True, slots=True)
class WebhooksSettings:
    """Telling others what happened."""

    allow: str = _knob(
        "",
        "Comma-separated private hosts and networks that webhooks may call: ci.internal, 10.0.0.0/8; default: none.",
        "WEBHOOKS_ALLOW",
    )
    timeout_sec: float = _knob(
        10.0, "Timeout of a webhook request in seconds.", "WEBHOOKS_TIMEOUT_SEC", least=0.1, most=50
    )
    disable_after: int = _knob(
        10,
        "Consecutive failed deliveries (each after all retries) after which a webhook is disabled; 0: never.",
        "WEBHOOKS_DISABLE_AFTER",
        least=0,
    )
    most: int = _knob(10, "Maximum webhooks per user.", "WEBHOOKS_MOST", least=0)
    keep_sec: int = _knob(30 * 86_400, "Retention of the delivery log in seconds.", "WEBHOOKS_KEEP_SEC", least=60)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is logged, and how it looks."""

    level: Literal["debug", "info", "warning", "error"] = _knob("info", "Minimum log level.", "LOG_LEVEL")
    format: Literal["console", "json"] = _knob("console", "Log format: console (human-readable) or json.", "LOG_FORMAT")


SECTIONS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "server": ServerSettings,
        "database": DatabaseSettings,
        "jobs": Jobs,
        "files": FilesSettings,
        "worker": WorkerSettings,
        "retry": RetrySettings,
        "judge": JudgeSettings,
        "accounts": AccountsSettings,
        "admission": AdmissionSettings,
        "cache": CacheSettings,
        "chains": Chains,
        "executions": ExecutionsSettings,
        "webhooks": WebhooksSettings,
        "log": LogSettings,
    }
)


def all_settings() -> Iterator[tuple[str, object, Knob]]:
    """``section.key``, default and description of every knob."""
    for section, model in SECTIONS.items():
        for item in dataclasses.fields(model):
            yield f"{section}.{item.name}", item.default, item.metadata["knob"]
