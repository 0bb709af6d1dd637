"""Signatures of outgoing requests: HMAC-SHA256 with a shared secret, in the two header forms that receivers know."""

from __future__ import annotations

import hashlib
import hmac


def sign_request(secret: bytes, timestamp: str, method: str, target: str, body: bytes) -> str:
    """``Adjudge-Signature`` of ``http`` and ``notify`` nodes: ``v1=`` over ``timestamp.method.target.body``."""
    return "v1=" + _hmac(secret, f"{timestamp}.{method}.{target}.", body)


def sign_delivery(secret: str, timestamp: int, body: bytes) -> str:
    """``X-Adjudge-Signature`` of webhooks: ``t=…,v1=…`` over ``timestamp.body``."""
    return f"t={timestamp},v1={_hmac(secret.encode(), f'{timestamp}.', body)}"


def _hmac(secret: bytes, prefix: str, body: bytes) -> str:
    return hmac.new(secret, prefix.encode() + body, hashlib.sha256).hexdigest()
