"""Settings of chains."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.settings.knob import declare as _knob
from adjudge.settings.secret import Secret


@dataclass(frozen=True, slots=True)
class Chains:
    """How long runs of chains stay, and what they may do to the outside."""

    keep_days: float = _knob(0.0, "How long runs that ended are kept; 0: for ever.", "CHAINS_KEEP_DAYS", least=0)
    stop_grace_sec: float = _knob(
        10.0,
        "How long a running node may take to end in good order once its run is to stop.",
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
        "Hosts that nodes may call, with commas: example.org, *.example.org, http://10.0.0.5:8080, 10.0.0.0/8; none.",
        "CHAINS_HTTP_ALLOW",
    )
    http_secret: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""), "The key that calls of nodes are signed with; empty: they are not.", "CHAINS_HTTP_SECRET"
    )
    secret_keys: Secret = _knob(  # noqa: RUF009  # it is dataclasses.field
        Secret(""),
        "Keys that named secrets are encrypted with, the newest first, with commas; empty: DATA_DIR/secrets.key.",
        "CHAINS_SECRET_KEYS",
    )
