"""The section ``server``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from adjudge.settings.secret import Secret
from adjudge.settings.setting import declare as _setting


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Listening address, data directory and request limits of the process."""

    environment: str = _setting(
        "dev",
        "Name of this installation; prefixes Redis keys, streams and consumer groups.",
        "ENVIRONMENT",
        pattern=r"[a-z0-9][a-z0-9-]{0,31}",
    )
    data_dir: Path = _setting(  # noqa: RUF009  # it is dataclasses.field
        Path("var"), "Directory of the SQLite database and the blob store in embedded mode.", "DATA_DIR"
    )
    host: str = _setting("127.0.0.1", "Address to listen on; 0.0.0.0 for all interfaces.", "HOST", pattern=r"\S+")
    metrics_port: int = _setting(
        0,
        "Port for /metrics, /health/live and /health/ready of every role; 0 disables it.",
        "METRICS_PORT",
        minimum=0,
        maximum=65535,
    )
    metrics_host: str = _setting(
        "127.0.0.1",
        "Address that metrics_port listens on; 0.0.0.0 for all interfaces.",
        "METRICS_HOST",
        pattern=r"\S+",
    )
    metrics_networks: str = _setting(
        "127.0.0.0/8, ::1/128",
        "Comma-separated networks whose direct requests may read /metrics without a token; none: no network.",
        "METRICS_NETWORKS",
    )
    metrics_token: Secret = _setting(  # noqa: RUF009  # it is dataclasses.field
        Secret(""),
        "Bearer token that may read /metrics from any address, at least 16 characters; empty: none.",
        "METRICS_TOKEN",
    )
    port: int = _setting(8080, "Port to listen on; 0 picks a free port.", "PORT", minimum=0, maximum=65535)
    public_url: str = _setting(
        "",
        "External base URL (https://HOST) when behind a reverse proxy; empty: taken from each request.",
        "PUBLIC_URL",
        pattern=r"(https?://[^/\s]+)?",
    )
    trusted_proxies: str = _setting(
        "",
        "Comma-separated proxy addresses whose X-Forwarded-For and X-Forwarded-Proto headers are trusted; empty: none.",
        "TRUSTED_PROXIES",
    )
    body_limit_bytes: int = _setting(
        8 * 1024**2, "Maximum request body size in bytes, except uploads.", "BODY_LIMIT_BYTES", minimum=1024
    )
    anonymous_body_limit_bytes: int = _setting(
        65536,
        "Maximum request body size in bytes without a valid token or session.",
        "ANONYMOUS_BODY_LIMIT_BYTES",
        minimum=1024,
    )
    upload_limit_bytes: int = _setting(
        512 * 1024**2, "Maximum size of an uploaded problem package in bytes.", "UPLOAD_LIMIT_BYTES", minimum=1024
    )
    submission_files: int = _setting(
        32,
        "Maximum number of files of a submission; output-only problems always take one per test.",
        "SUBMISSION_FILES",
        minimum=10,
        maximum=48,
    )
    submission_bytes: int = _setting(
        4 * 1024**2,
        "Maximum total size of the files of a submission in bytes, archives unpacked; problems may allow less.",
        "SUBMISSION_BYTES",
        minimum=1024,
        maximum=10 * 1024**2,
    )
    head_timeout_sec: float = _setting(
        10.0, "Timeout in seconds for receiving the request headers.", "HEAD_TIMEOUT_SEC", minimum=0.1
    )
    request_timeout_sec: float = _setting(
        30.0,
        "Request timeout in seconds; event streams and ?wait= requests have their own.",
        "REQUEST_TIMEOUT_SEC",
        minimum=1,
    )
    shutdown_sec: float = _setting(
        10.0, "Grace period in seconds for requests in progress at shutdown.", "SHUTDOWN_SEC", minimum=0
    )
    streams_per_user: int = _setting(
        100, "Maximum open event streams per user and server.", "STREAMS_PER_USER", minimum=1
    )
    streams_most: int = _setting(10_000, "Maximum open event streams per server.", "STREAMS_MOST", minimum=1)
    cors_origins: str = _setting(
        "", "Comma-separated origins allowed to call the API with a token; * for all; empty: none.", "CORS_ORIGINS"
    )
