"""Declarations of all settings: type, default, bounds, help text.

To add a setting, add a field to its section; parsing, validation and the reference page follow from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from adjudge.domain.retry import RetryPolicy
from adjudge.settings.chains_section import ChainsSettings
from adjudge.settings.jobs_section import JobsSettings
from adjudge.settings.mail_section import MailSettings
from adjudge.settings.printing_section import PrintingSettings
from adjudge.settings.retention_section import RetentionSettings
from adjudge.settings.secret import DatabaseUrl, Secret
from adjudge.settings.server_section import ServerSettings
from adjudge.settings.setting import Setting
from adjudge.settings.setting import declare as _setting

_RETRY: Final = RetryPolicy()


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The database connection."""

    url: DatabaseUrl = _setting(  # noqa: RUF009  # it is dataclasses.field
        DatabaseUrl(""),
        "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME; default: a SQLite file in the data directory.",
        "DATABASE_URL",
    )
    timeout_sec: float = _setting(
        30.0,
        "Timeout in seconds of a PostgreSQL transaction; a connection that does not reply in time is closed.",
        "DATABASE_TIMEOUT_SEC",
        minimum=1,
        maximum=3600,
    )


@dataclass(frozen=True, slots=True)
class FilesSettings:
    """The blob store: S3 if a bucket is set, otherwise a directory in the data directory."""

    s3_bucket: str = _setting("", "S3 bucket; empty: a local directory.", "S3_BUCKET")
    s3_prefix: str = _setting("blobs", "Key prefix of all objects.", "S3_PREFIX")
    s3_endpoint: str = _setting("", "https://HOST:PORT of an S3-compatible service; empty: AWS.", "S3_ENDPOINT")
    s3_region: str = _setting("us-east-1", "Region of the bucket.", "S3_REGION")
    s3_access_key_id: str = _setting(
        "", "S3 access key id; empty: the machine's default credentials.", "S3_ACCESS_KEY_ID"
    )
    s3_timeout_sec: float = _setting(
        60.0, "Timeout in seconds of one S3 request (for large files: of one part).", "S3_TIMEOUT_SEC", minimum=1
    )
    s3_secret_access_key: Secret = _setting(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "S3 secret access key.", "S3_SECRET_ACCESS_KEY"
    )


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Concurrency, registration and caches of a worker."""

    name: str = _setting(
        "",
        "Worker name; must be unique; default: hostname-pid.",
        "WORKER_ID",
        allow_unprefixed=True,
        pattern=r"[A-Za-z0-9._:@-]{0,128}",
    )
    slots: int = _setting(0, "Number of jobs run concurrently; 0: number of CPU cores.", "WORKER_SLOTS", minimum=0)
    pin_cpus: bool = _setting(
        False,
        "Pin each slot to one CPU core; more stable timings on dedicated machines.",
        "WORKER_PIN_CPUS",
    )
    limits: str = _setting(
        "",
        "Concurrency limits per language, job kind or node type within the slots: language:java=1, kind:node=4, "
        "node:http=2.",
        "WORKER_LIMITS",
        pattern=r"((language|kind|node):[A-Za-z0-9._+-]+ *= *[1-9][0-9]{0,3}( *, *|$))*",
    )
    executions_beside_judging: bool = _setting(
        False,
        "Run executions while submissions are judged in the same process. Programs that run concurrently can "
        "communicate by the load they cause: if enabled, a submission can leak its secret tests to an execution of the "
        "same user.",
        "WORKER_EXECUTIONS_BESIDE_JUDGING",
    )
    rate_per_sec: float = _setting(
        0.0,
        "Maximum job starts per second over all workers that share a Redis; 0: unlimited.",
        "WORKER_RATE_PER_SEC",
        minimum=0,
    )
    drain_sec: float = _setting(
        30.0, "Grace period in seconds for running jobs at shutdown.", "WORKER_DRAIN_SEC", minimum=0
    )
    etcd_endpoints: str = _setting(
        "",
        "Comma-separated etcd endpoints (http://HOST:2379) of the worker registry; empty: the database.",
        "ETCD_ENDPOINTS",
    )
    etcd_user: str = _setting("", "etcd user name; empty: no authentication.", "ETCD_USER")
    etcd_password: Secret = _setting(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "etcd password.", "ETCD_PASSWORD"
    )
    cache_dir: Path = _setting(  # noqa: RUF009  # it is dataclasses.field
        Path("~/.cache/adjudge/blobs"), "Directory of cached test data.", "WORKER_CACHE_DIR"
    )
    cache_bytes: int = _setting(
        4 * 1024**3, "Maximum size of cached test data in bytes (LRU eviction).", "WORKER_CACHE_BYTES", minimum=0
    )


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """Retry policy of jobs that failed for infrastructure reasons."""

    max_retries: int = _setting(
        _RETRY.max_retries, "Maximum retries after the first attempt.", "RETRY_MAX_RETRIES", minimum=0, maximum=100
    )
    base_ms: int = _setting(
        _RETRY.base_ms,
        "Delay before the first retry in milliseconds; doubles with each retry.",
        "RETRY_BASE_MS",
        minimum=1,
    )
    cap_ms: int = _setting(
        _RETRY.cap_ms, "Maximum retry delay in milliseconds, before jitter of up to 10 %.", "RETRY_CAP_MS", minimum=1
    )

    def policy(self) -> RetryPolicy:
        return RetryPolicy(max_retries=self.max_retries, base_ms=self.base_ms, cap_ms=self.cap_ms)


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Judging, and the cache of compiled programs."""

    cache_dir: Path = _setting(  # noqa: RUF009  # it is dataclasses.field
        Path("~/.cache/adjudge/compiled"), "Directory of cached compiled programs.", "JUDGE_CACHE_DIR"
    )
    cache_bytes: int = _setting(
        2 * 1024**3,
        "Maximum size of cached compiled programs in bytes (LRU eviction); 0 disables the cache.",
        "JUDGE_CACHE_BYTES",
        minimum=0,
    )
    languages_file: str = _setting(
        "",
        "TOML file in the format of languages.toml that changes, pins, disables or adds languages.",
        "JUDGE_LANGUAGES_FILE",
    )
    artifact_bytes: int = _setting(
        128 * 1024**2,
        "Maximum size of a compiled program in bytes; a larger one is a compile error.",
        "JUDGE_ARTIFACT_BYTES",
        minimum=1024**2,
        maximum=1024**3,
    )
    compilations: int = _setting(
        0,
        "Maximum concurrent compilations of a worker, within its slots; 0: half the number of CPU cores.",
        "JUDGE_COMPILATIONS",
        minimum=0,
        maximum=1000,
    )
    time_margin: float = _setting(
        0.1,
        "Time-limit overruns within this fraction of the limit are repeated with nothing else running before TLE.",
        "JUDGE_TIME_MARGIN",
        minimum=0,
        maximum=10,
    )
    stdout_limit_bytes: int = _setting(
        262_144,
        "Maximum captured standard output in bytes.",
        "JUDGE_STDOUT_LIMIT_BYTES",
        allow_unprefixed=True,
        minimum=1024,
    )
    stderr_limit_bytes: int = _setting(
        1_048_576,
        "Maximum captured standard error in bytes.",
        "JUDGE_STDERR_LIMIT_BYTES",
        allow_unprefixed=True,
        minimum=1024,
    )
    use_agent: bool = _setting(
        True,
        "Keep one launcher agent per slot; off: start a launcher process for every run, which is ten times slower.",
        "JUDGE_USE_AGENT",
    )
    allow_without_cgroup: bool = _setting(
        False,
        "Run programs on hosts without a usable cgroup. Shared memory, socket buffers and the CPU time of unreaped "
        "children are then unlimited: only for trusted programs.",
        "JUDGE_ALLOW_WITHOUT_CGROUP",
    )


@dataclass(frozen=True, slots=True)
class AccountsSettings:
    """Registration, login, sessions and single sign-on."""

    registration: Literal["open", "invitation", "closed"] = _setting(
        "invitation", "Who may register: open (anybody), invitation (with a code) or closed (nobody).", "REGISTRATION"
    )
    visitors_may_read: bool = _setting(
        True, "Show published problems to users who are not logged in.", "VISITORS_MAY_READ"
    )
    password_min_length: int = _setting(10, "Minimum password length.", "PASSWORD_MIN_LENGTH", minimum=6, maximum=128)
    session_idle_hours: float = _setting(72.0, "Idle timeout of sessions in hours.", "SESSION_IDLE_HOURS", minimum=0.1)
    session_max_hours: float = _setting(720.0, "Maximum session lifetime in hours.", "SESSION_MAX_HOURS", minimum=0.1)
    login_per_min: float = _setting(
        10.0,
        "Maximum login attempts per minute and user name; three times as many per IP address.",
        "LOGIN_PER_MIN",
        minimum=0.1,
    )
    reauthentication_minutes: float = _setting(
        10.0,
        "Minutes after a login in which actions that change results need no password.",
        "REAUTHENTICATION_MINUTES",
        minimum=0,
        maximum=1440,
    )
    credential_cache_sec: float = _setting(
        3.0,
        "Seconds for which tokens and sessions are cached; a revocation on another server takes "
        "effect after at most this time.",
        "CREDENTIAL_CACHE_SEC",
        minimum=0,
        maximum=5,
    )
    oidc_issuer: str = _setting("", "Issuer URL of the OpenID Connect provider; empty: disabled.", "OIDC_ISSUER")
    oidc_client_id: str = _setting("", "OpenID Connect client id.", "OIDC_CLIENT_ID")
    oidc_client_secret: Secret = _setting(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "OpenID Connect client secret; empty for a public client.", "OIDC_CLIENT_SECRET"
    )
    oidc_label: str = _setting("Single sign-on", "Label of the single sign-on button.", "OIDC_LABEL")
    oidc_registration: bool = _setting(True, "Create an account at the first single sign-on.", "OIDC_REGISTRATION")


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """Limits on submissions. Users with submission:unlimited are exempt; 0 disables a limit."""

    user_per_sec: float = _setting(
        1.0, "Sustained submissions per second and user.", "ADMISSION_USER_PER_SEC", minimum=0
    )
    user_burst: int = _setting(20, "Burst size of admission.user_per_sec.", "ADMISSION_USER_BURST", minimum=1)
    address_per_sec: float = _setting(
        20.0, "Sustained submissions per second and IP address.", "ADMISSION_ADDRESS_PER_SEC", minimum=0
    )
    address_burst: int = _setting(200, "Burst size of admission.address_per_sec.", "ADMISSION_ADDRESS_BURST", minimum=1)
    problem_per_sec: float = _setting(
        0.0,
        "Sustained submissions per second and problem, over all users; 0: unlimited.",
        "ADMISSION_PROBLEM_PER_SEC",
        minimum=0,
    )
    problem_burst: int = _setting(200, "Burst size of admission.problem_per_sec.", "ADMISSION_PROBLEM_BURST", minimum=1)
    daily_quota: int = _setting(1000, "Maximum submissions per user and UTC day.", "ADMISSION_DAILY_QUOTA", minimum=0)
    in_flight: int = _setting(20, "Maximum unfinished submissions per user.", "ADMISSION_IN_FLIGHT", minimum=0)
    high_watermark: int = _setting(
        20_000,
        "Queue length at which new submissions are rejected (admins excepted).",
        "ADMISSION_HIGH_WATERMARK",
        minimum=0,
    )
    low_watermark: int = _setting(
        15_000,
        "Queue length at which submissions are accepted again; at most the high watermark.",
        "ADMISSION_LOW_WATERMARK",
        minimum=0,
    )
    overload: Literal["refuse", "accept_later"] = _setting(
        "refuse",
        "Above the high watermark: refuse (429) or accept_later (202 with delayed dispatch).",
        "ADMISSION_OVERLOAD",
    )
    later_sec: int = _setting(
        30,
        "Dispatch delay of accept_later, and the Retry-After value, in seconds.",
        "ADMISSION_LATER_SEC",
        minimum=1,
        maximum=3600,
    )
    health_gate: bool = _setting(
        True, "Reject submissions in a language that no live worker supports.", "ADMISSION_HEALTH_GATE"
    )


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The in-process cache of database reads. If Redis is configured, it is a second, shared tier."""

    entries: int = _setting(
        20_000, "Maximum number of entries in the in-process cache (LRU eviction).", "CACHE_ENTRIES", minimum=1
    )
    bytes: int = _setting(64 * 1024**2, "Maximum size of the in-process cache in bytes.", "CACHE_BYTES", minimum=0)


@dataclass(frozen=True, slots=True)
class ExecutionsSettings:
    """Limits of executions: programs that are run without a problem."""

    cpu_ms: int = _setting(10_000, "Maximum CPU time per run in milliseconds.", "EXECUTIONS_CPU_MS", minimum=1)
    memory_mib: int = _setting(1024, "Maximum memory per run in MiB.", "EXECUTIONS_MEMORY_MIB", minimum=16)
    inputs: int = _setting(100, "Maximum inputs per request.", "EXECUTIONS_INPUTS", minimum=1, maximum=1000)
    total_sec: int = _setting(
        600, "Maximum wall time of one execution over all inputs in seconds.", "EXECUTIONS_TOTAL_SEC", minimum=1
    )
    output_bytes: int = _setting(
        4 * 1024**2,
        "Maximum stored output of one execution over all inputs in bytes; the rest is truncated.",
        "EXECUTIONS_OUTPUT_BYTES",
        minimum=1024,
    )
    user_bytes: int = _setting(
        256 * 1024**2,
        "Maximum stored inputs and outputs of one user's executions in bytes; 0: unlimited. Users with "
        "submission:unlimited are exempt.",
        "EXECUTIONS_USER_BYTES",
        minimum=0,
    )
    keep_sec: int = _setting(86_400, "Retention of executions in seconds.", "EXECUTIONS_KEEP_SEC", minimum=60)


@dataclass(frozen=True, slots=True)
class WebhooksSettings:
    """Delivery of webhooks."""

    allow: str = _setting(
        "",
        "Comma-separated private hosts and networks that webhooks may call: ci.internal, 10.0.0.0/8; default: none.",
        "WEBHOOKS_ALLOW",
    )
    timeout_sec: float = _setting(
        10.0, "Timeout of a webhook request in seconds.", "WEBHOOKS_TIMEOUT_SEC", minimum=0.1, maximum=50
    )
    disable_after: int = _setting(
        10,
        "Consecutive failed deliveries (each after all retries) after which a webhook is disabled; 0: never.",
        "WEBHOOKS_DISABLE_AFTER",
        minimum=0,
    )
    most: int = _setting(10, "Maximum webhooks per user.", "WEBHOOKS_MOST", minimum=0)
    keep_sec: int = _setting(30 * 86_400, "Retention of the delivery log in seconds.", "WEBHOOKS_KEEP_SEC", minimum=60)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Log level and format."""

    level: Literal["debug", "info", "warning", "error"] = _setting("info", "Minimum log level.", "LOG_LEVEL")
    format: Literal["console", "json"] = _setting(
        "console", "Log format: console (human-readable) or json.", "LOG_FORMAT"
    )


@dataclass(frozen=True, slots=True)
class TracesSettings:
    """Export of traces by OpenTelemetry."""

    endpoint: str = _setting(
        "",
        "URL of an OTLP receiver over HTTP, such as http://HOST:4318/v1/traces; empty: no traces.",
        "TRACES_ENDPOINT",
        pattern=r"(https?://\S+)?",
    )
    sample_ratio: float = _setting(
        0.1, "Share of traces that are exported, from 0 to 1.", "TRACES_SAMPLE_RATIO", minimum=0, maximum=1
    )


SECTIONS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "server": ServerSettings,
        "database": DatabaseSettings,
        "jobs": JobsSettings,
        "files": FilesSettings,
        "worker": WorkerSettings,
        "retry": RetrySettings,
        "judge": JudgeSettings,
        "accounts": AccountsSettings,
        "admission": AdmissionSettings,
        "cache": CacheSettings,
        "chains": ChainsSettings,
        "executions": ExecutionsSettings,
        "printing": PrintingSettings,
        "webhooks": WebhooksSettings,
        "retention": RetentionSettings,
        "mail": MailSettings,
        "log": LogSettings,
        "traces": TracesSettings,
    }
)


def all_settings() -> Iterator[tuple[str, object, Setting]]:
    """``section.key``, default and declaration of every setting."""
    for section, model in SECTIONS.items():
        for item in dataclasses.fields(model):
            yield f"{section}.{item.name}", item.default, item.metadata["setting"]
