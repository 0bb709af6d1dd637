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
    metrics_port: int = _knob(
        0,
        "Port on loopback where a worker or a scheduler serves /metrics and /health/live; 0: none.",
        "METRICS_PORT",
        least=0,
        most=65535,
    )
    port: int = _knob(8080, "Port to listen on; 0 picks a free one.", "PORT", least=0, most=65535)
    public_url: str = _knob(
        "",
        "https://HOST as people reach it, if a proxy stands in front; empty: as each request says.",
        "PUBLIC_URL",
        pattern=r"(https?://[^/\s]+)?",
    )
    trusted_proxies: str = _knob(
        "",
        "Addresses of proxies whose X-Forwarded-For and -Proto are believed, with commas; empty: nobody's.",
        "TRUSTED_PROXIES",
    )
    body_limit_bytes: int = _knob(
        8 * 1024**2, "The largest body that a request may have; uploads have their own.", "BODY_LIMIT_BYTES", least=1024
    )
    anonymous_body_limit_bytes: int = _knob(
        65536, "The largest body without a valid token or session.", "ANONYMOUS_BODY_LIMIT_BYTES", least=1024
    )
    upload_limit_bytes: int = _knob(
        512 * 1024**2, "The largest upload of a problem package.", "UPLOAD_LIMIT_BYTES", least=1024
    )
    head_timeout_sec: float = _knob(
        10.0, "How long a client may take to send a request's headers.", "HEAD_TIMEOUT_SEC", least=0.1
    )
    request_timeout_sec: float = _knob(
        30.0, "How long a request may take; event streams and ?wait= have their own.", "REQUEST_TIMEOUT_SEC", least=1
    )
    shutdown_sec: float = _knob(
        10.0, "How long requests under way may finish once the server is asked to end.", "SHUTDOWN_SEC", least=0
    )
    streams_per_user: int = _knob(
        100, "How many event streams one user may have open at one server.", "STREAMS_PER_USER", least=1
    )
    streams_most: int = _knob(
        10_000, "How many event streams one server has open for everybody.", "STREAMS_MOST", least=1
    )
    cors_origins: str = _knob(
        "", "Origins whose pages may call the API with a token, with commas; * for all; empty: none.", "CORS_ORIGINS"
    )
    metrics_access: Literal["loopback", "token", "open"] = _knob(
        "loopback",
        "Who reads /metrics besides holders of ops:read: this machine if no proxy stands between, nobody, everybody.",
        "METRICS_ACCESS",
    )


@dataclass(frozen=True, slots=True)
class Database:
    """The truth."""

    url: DatabaseUrl = _knob(  # noqa: RUF009  # it is dataclasses.field
        DatabaseUrl(""),
        "sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME; by default a file in the data folder.",
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
class Files:
    """Where files are kept: S3 where a bucket is named, else a folder in the data folder."""

    s3_bucket: str = _knob("", "The bucket; empty: a folder of this machine.", "S3_BUCKET")
    s3_prefix: str = _knob("blobs", "What the names of our objects begin with.", "S3_PREFIX")
    s3_endpoint: str = _knob("", "https://HOST:PORT of anything but AWS.", "S3_ENDPOINT")
    s3_region: str = _knob("us-east-1", "The bucket's region.", "S3_REGION")
    s3_access_key_id: str = _knob("", "Who we are to S3; empty: as the machine is set up.", "S3_ACCESS_KEY_ID")
    s3_timeout_sec: float = _knob(
        60.0, "How long one request to S3 may take; a part of a large file is one.", "S3_TIMEOUT_SEC", least=1
    )
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
        "How many jobs may start in a second, over all workers that share a Redis; 0: as many as there are.",
        "WORKER_RATE_PER_SEC",
        least=0,
    )
    drain_sec: float = _knob(
        30.0, "How long it may finish what runs once it is asked to end.", "WORKER_DRAIN_SEC", least=0
    )
    etcd_endpoints: str = _knob(
        "", "http://HOST:2379, several with commas: workers are listed there; empty: in the database.", "ETCD_ENDPOINTS"
    )
    etcd_user: str = _knob("", "Who we are to etcd, where it asks.", "ETCD_USER")
    etcd_password: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "The password that proves it.", "ETCD_PASSWORD"
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
class Accounts:
    """People and programs: how they get in."""

    registration: Literal["open", "invitation", "closed"] = _knob(
        "invitation", "Who may make an account: anybody, whoever was invited, or nobody.", "REGISTRATION"
    )
    visitors_may_read: bool = _knob(
        True, "Whether published problems are shown to whoever is not logged in.", "VISITORS_MAY_READ"
    )
    password_min_length: int = _knob(10, "The shortest password.", "PASSWORD_MIN_LENGTH", least=6, most=128)
    session_idle_hours: float = _knob(
        72.0, "A session that is not used for so long has ended.", "SESSION_IDLE_HOURS", least=0.1
    )
    session_max_hours: float = _knob(720.0, "A session ends after so long anyway.", "SESSION_MAX_HOURS", least=0.1)
    login_per_min: float = _knob(
        10.0, "Tries to log in for one name, and thrice as many for one address.", "LOGIN_PER_MIN", least=0.1
    )
    credential_cache_sec: float = _knob(
        3.0,
        "How long a token or session that was revoked elsewhere may still be believed.",
        "CREDENTIAL_CACHE_SEC",
        least=0,
        most=5,
    )
    oidc_issuer: str = _knob(
        "", "https://HOST of an OpenID Connect provider that people may log in by; empty: none.", "OIDC_ISSUER"
    )
    oidc_client_id: str = _knob("", "Who we are to that provider.", "OIDC_CLIENT_ID")
    oidc_client_secret: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "The secret that proves it; empty for a public client.", "OIDC_CLIENT_SECRET"
    )
    oidc_label: str = _knob("Single sign-on", "What the button to log in by it says.", "OIDC_LABEL")
    oidc_registration: bool = _knob(
        True, "Whether somebody whom the provider knows and we do not gets an account.", "OIDC_REGISTRATION"
    )


@dataclass(frozen=True, slots=True)
class Admission:
    """What is let in. Whoever holds submission:unlimited has no rate, quota or cap; 0 switches a limit off."""

    user_per_sec: float = _knob(
        1.0, "Submissions of one user in a second, over time.", "ADMISSION_USER_PER_SEC", least=0
    )
    user_burst: int = _knob(20, "How many of them may come at once.", "ADMISSION_USER_BURST", least=1)
    address_per_sec: float = _knob(
        20.0, "Submissions from one address in a second, over time.", "ADMISSION_ADDRESS_PER_SEC", least=0
    )
    address_burst: int = _knob(200, "How many of them may come at once.", "ADMISSION_ADDRESS_BURST", least=1)
    daily_quota: int = _knob(1000, "Submissions of one user in a day (UTC).", "ADMISSION_DAILY_QUOTA", least=0)
    in_flight: int = _knob(20, "Submissions of one user without a verdict.", "ADMISSION_IN_FLIGHT", least=0)
    high_watermark: int = _knob(
        20_000, "From so many waiting jobs on, no more are let in but admins'.", "ADMISSION_HIGH_WATERMARK", least=0
    )
    low_watermark: int = _knob(
        15_000, "Until no more than so many wait; at most the high watermark.", "ADMISSION_LOW_WATERMARK", least=0
    )
    overload: Literal["refuse", "accept_later"] = _knob(
        "refuse",
        "Past the high watermark: answer 429, or 202 and deliver the job later.",
        "ADMISSION_OVERLOAD",
    )
    later_sec: int = _knob(
        30, "How much later, and what Retry-After says in both cases.", "ADMISSION_LATER_SEC", least=1, most=3600
    )
    health_gate: bool = _knob(
        True, "Whether a language that no worker alive can run is refused at once.", "ADMISSION_HEALTH_GATE"
    )


@dataclass(frozen=True, slots=True)
class Cache:
    """What a server remembers of the database; beside it Redis remembers for all servers, where there is Redis."""

    entries: int = _knob(20_000, "How many things; the longest unused goes first.", "CACHE_ENTRIES", least=1)
    bytes: int = _knob(64 * 1024**2, "How much they may take together.", "CACHE_BYTES", least=0)


@dataclass(frozen=True, slots=True)
class Executions:
    """Programs that are run without a problem."""

    cpu_ms: int = _knob(10_000, "The most CPU time that one run may ask for.", "EXECUTIONS_CPU_MS", least=1)
    memory_mib: int = _knob(1024, "The most memory that one run may ask for.", "EXECUTIONS_MEMORY_MIB", least=16)
    inputs: int = _knob(100, "How many inputs one call may bring.", "EXECUTIONS_INPUTS", least=1, most=1000)
    total_sec: int = _knob(
        600, "How long all inputs of one execution may take together, by the clock.", "EXECUTIONS_TOTAL_SEC", least=1
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
    keep_sec: int = _knob(86_400, "How long an execution and its outputs are kept.", "EXECUTIONS_KEEP_SEC", least=60)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Telling others what happened."""

    allow: str = _knob(
        "",
        "Hosts and networks inside that may be called all the same, with commas: ci.internal, 10.0.0.0/8; none.",
        "WEBHOOKS_ALLOW",
    )
    timeout_sec: float = _knob(10.0, "How long the other side may take.", "WEBHOOKS_TIMEOUT_SEC", least=0.1, most=50)
    disable_after: int = _knob(
        10,
        "A webhook is switched off when so many deliveries in a row failed, each after all its attempts; 0: never.",
        "WEBHOOKS_DISABLE_AFTER",
        least=0,
    )
    most: int = _knob(10, "How many webhooks one user may have.", "WEBHOOKS_MOST", least=0)
    keep_sec: int = _knob(30 * 86_400, "How long the log of deliveries is kept.", "WEBHOOKS_KEEP_SEC", least=60)


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
        "accounts": Accounts,
        "admission": Admission,
        "cache": Cache,
        "chains": Chains,
        "executions": Executions,
        "webhooks": Webhooks,
        "log": Log,
    }
)


def declared() -> Iterator[tuple[str, object, Knob]]:
    """``section.key``, default and description of every knob."""
    for section, model in SECTIONS.items():
        for item in dataclasses.fields(model):
            yield f"{section}.{item.name}", item.default, item.metadata["knob"]
