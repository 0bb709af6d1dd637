"""IP addresses: which are public, and so may be called on behalf of a user.

The lists are IANA's special-purpose address registries plus ranges that those omit (multicast, deprecated ranges, IPv6
outside the global unicast block). They are listed here because ``ipaddress.is_global`` differs between Python versions
and calls some ranges global that reach internal hosts.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_DENIED_IPV4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private use
        "100.64.0.0/10",  # shared address space of carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link local; cloud metadata services
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # IETF protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # automatic multicast tunneling
        "192.88.99.0/24",  # 6to4 relay anycast, deprecated
        "192.168.0.0/16",  # private use
        "192.175.48.0/24",  # AS112, direct delegation
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved; limited broadcast
    )
)
_GLOBAL_UNICAST_IPV6: Final = ipaddress.IPv6Network("2000::/3")
"""The only IPv6 block with allocated unicast addresses. Outside it are, among others, ``::/96`` (IPv4-compatible),
``::ffff:0:0:0/96`` (IPv4-translated), ``64:ff9b:1::/48`` (local NAT64), ``100::/64`` (discard only), ``5f00::/16``
(segment routing), ``fc00::/7`` (unique local), ``fe80::/10`` (link local), ``fec0::/10`` (site local) and
``ff00::/8`` (multicast)."""
_DENIED_IPV6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocol assignments; includes Teredo (2001::/32), which embeds an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4; `unwrap_ipv4` has replaced those that embed an IPv4 address
        "2620:4f:8000::/48",  # AS112, direct delegation
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def unwrap_ipv4(address: Address) -> Address:
    """The IPv4 address embedded in an IPv6 address (mapped, 6to4, NAT64), else the address itself."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: Address) -> bool:
    """Whether an address is a unicast address of the public internet; an embedded IPv4 address is checked instead."""
    real = unwrap_ipv4(address)
    if isinstance(real, ipaddress.IPv4Address):
        return not any(real in network for network in _DENIED_IPV4)
    return real in _GLOBAL_UNICAST_IPV6 and not any(real in network for network in _DENIED_IPV6)


def is_in_networks(address: str, networks: Iterable[str]) -> bool:
    """Whether an address is in one of the networks; an IPv4 address that is embedded in an IPv6 one counts as IPv4."""
    try:
        real = unwrap_ipv4(ipaddress.ip_address(address))
    except ValueError:
        return False
    return any(real in ipaddress.ip_network(network) for network in networks)
