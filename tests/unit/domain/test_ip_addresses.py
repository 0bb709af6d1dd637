"""Addresses of IANA's special-purpose registries are not public, wrapped or not."""

from __future__ import annotations

import ipaddress

import pytest

from adjudge.domain.ip_addresses import is_public, unwrap_ipv4

SPECIAL_IPV4 = (
    *("0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32"),
    *("192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32"),
    *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "233.252.0.0/24", "240.0.0.0/4", "255.255.255.255/32"),
)
"""The registry of IPv4, and multicast."""

SPECIAL_IPV6 = (
    *("::1/128", "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128"),
    *("2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28"),
    *("2001:20::/28", "2001:30::/28", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7"),
    *("fe80::/10",),
    *("::/96", "::ffff:0:0:0/96", "fec0::/10", "ff00::/8", "4000::/3", "8000::/1", "200::/7", "400::/6"),
)
"""The registry of IPv6 but for what wraps IPv4 addresses; then deprecated ranges, multicast, unassigned ones."""

PUBLIC_IPV4 = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.32.0.0", "223.255.255.255")
PUBLIC_IPV6 = ("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001:830::200e", "2400:cb00::1", "2003::1")


@pytest.mark.parametrize("network", [*SPECIAL_IPV4, *SPECIAL_IPV6])
def test_special_purpose_range_is_not_public(network: str) -> None:
    known = ipaddress.ip_network(network)
    middle = known[known.num_addresses // 2]
    for address in (known[0], middle, known[-1]):
        assert not is_public(address), address


@pytest.mark.parametrize("address", [*PUBLIC_IPV4, *PUBLIC_IPV6])
def test_ordinary_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def wrapped(address: ipaddress.IPv4Address) -> dict[str, ipaddress.IPv6Address]:
    bits = int(address)
    return {
        "mapped": ipaddress.IPv6Address((0xFFFF << 32) | bits),
        "NAT64": ipaddress.IPv6Address((0x64FF9B << 96) | bits),
        "6to4": ipaddress.IPv6Address((0x2002 << 112) | (bits << 80) | 1),
    }


@pytest.mark.parametrize("network", SPECIAL_IPV4)
def test_wrapped_special_address_is_not_public(network: str) -> None:
    inside = ipaddress.IPv4Network(network)[0]
    for way, address in wrapped(inside).items():
        assert unwrap_ipv4(address) == inside, way
        assert not is_public(address), way


def test_wrapped_public_address_is_public() -> None:
    assert all(is_public(address) for address in wrapped(ipaddress.IPv4Address("8.8.8.8")).values())


@pytest.mark.parametrize(
    "address",
    [
        "2001:0:4136:e378:8000:63bf:f5ff:fffe",  # Teredo, whose client is 10.0.0.1
        "::10.0.0.1",  # IPv4-compatible
        "::8.8.8.8",
        "::ffff:0:10.0.0.1",  # IPv4-translated
        "64:ff9b:1:fffe:a00:1::",  # NAT64 of a local network
        "fe80::1%eth0",
        "fec0::1",
    ],
)
def test_unused_wrappings_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
