"""Settings of chains."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.settings.knob import declare as _knob
from adjudge.settings.secret import Secret


@dataclass(frozen=True, slots=True)
class Chains:
    """How long runs of chains stay, and what they may do to the outside."""

    keep_days: float = _knob(
        0.0, "Retention of finished chain runs in days; 0: unlimited.", "CHAINS_KEEP_DAYS", least=0
    )
    stop_grace_sec: float = _knob(
        10.0,
        "Seconds a running node may take to stop before it is killed.",
        "CHAINS_STOP_GRACE_SEC",
        least=0,
    )
    node_timeout_sec: float = _knob(
        3600.0,
        "How long one attempt of a node may run that has no timeout_ms; waiting without a worker is not limited.",
        "CHAINS_NODE_TIMEOUT_SEC",
        least=1,
        most=86_400 * 7,
    )
    http_allow: str = _knob(
        "",
        "Comma-separated hosts and networks that http and notify nodes may call: example.org, "
        "*.example.org, http://10.0.0.5:8080, 10.0.0.0/8; default: none.",
        "CHAINS_HTTP_ALLOW",
    )
    http_secret: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "HMAC key that signs requests of http and notify nodes; empty: unsigned.", "CHAINS_HTTP_SECRET"
    )
    secret_keys: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""),
        "Keys that named secrets are encrypted with, the newest first, with commas; empty: DATA_DIR/secrets.key.",
        "CHAINS_SECRET_KEYS",
    )
