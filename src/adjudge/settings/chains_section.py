"""The section ``chains``."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.settings.secret import Secret
from adjudge.settings.setting import declare as _setting


@dataclass(frozen=True, slots=True)
class ChainsSettings:
    """Retention and timeouts of chain runs, and the hosts that nodes may call."""

    keep_days: float = _setting(
        90.0, "Retention of finished chain runs in days; 0: unlimited.", "CHAINS_KEEP_DAYS", minimum=0
    )
    stop_grace_sec: float = _setting(
        10.0,
        "Seconds a running node may take to stop before it is killed.",
        "CHAINS_STOP_GRACE_SEC",
        minimum=0,
    )
    node_timeout_sec: float = _setting(
        3600.0,
        "Timeout in seconds of one attempt of a node without timeout_ms; time spent waiting is not counted.",
        "CHAINS_NODE_TIMEOUT_SEC",
        minimum=1,
        maximum=86_400 * 7,
    )
    http_allow: str = _setting(
        "",
        "Comma-separated hosts and networks that http and notify nodes may call: example.org, "
        "*.example.org, http://10.0.0.5:8080, 10.0.0.0/8; default: none.",
        "CHAINS_HTTP_ALLOW",
    )
    http_secret: Secret = _setting(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "HMAC key that signs requests of http and notify nodes; empty: unsigned.", "CHAINS_HTTP_SECRET"
    )
    secret_keys: Secret = _setting(  # noqa: RUF009  # it is dataclasses.field
        Secret(""),
        "Comma-separated encryption keys of named secrets, newest first; empty: DATA_DIR/secrets.key.",
        "CHAINS_SECRET_KEYS",
    )
