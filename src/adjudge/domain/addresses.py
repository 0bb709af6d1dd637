"""Addresses of machines: which of them anybody may call, and which lie inside."""

from __future__ import annotations

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def behind(address: Address) -> Address:
    """The IPv4 address that an IPv6 address only wraps (mapped, 6to4, NAT64), else itself."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: Address) -> bool:
    """Whether an address is one machine's out in the world: not private, loopback, link-local or many machines'."""
    return address.is_global and not address.is_multicast
