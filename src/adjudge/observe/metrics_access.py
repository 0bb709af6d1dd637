"""Who may read ``/metrics``: clients in allowed networks, and clients that send the metrics token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_SCHEME: Final = "bearer"
LOOPBACK: Final = "127.0.0.0/8, ::1/128"
NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class MetricsAccess:
    """The rule of one process. Only a digest of the token is kept."""

    networks: tuple[Network, ...]
    token_digest: bytes | None = None

    @classmethod
    def of(cls, networks: str, token: str = "") -> MetricsAccess:
        """Parse a comma-separated list of networks, or ``none``; raises ``ValueError`` with the invalid one."""
        items = [] if networks.strip() == NONE else [item.strip() for item in networks.split(",")]
        parsed = tuple(ipaddress.ip_network(item) for item in items if item)
        return cls(parsed, _digest(token) if token else None)

    def allows_address(self, address: str) -> bool:
        """Whether a direct client with this address is in an allowed network."""
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        plain = getattr(parsed, "ipv4_mapped", None) or parsed
        return any(plain in network for network in self.networks)

    def allows_token(self, authorization: str) -> bool:
        """Whether an ``Authorization`` header has the token; takes the same time for every wrong one."""
        scheme, _, given = authorization.partition(" ")
        if self.token_digest is None or scheme.lower() != _SCHEME:
            return False
        return hmac.compare_digest(_digest(given.strip()), self.token_digest)


LOOPBACK_ONLY: Final = MetricsAccess.of(LOOPBACK)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
