"""The networks from which participants may log in and submit."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from adjudge.domain.errors import Forbidden


def is_inside(ranges: Sequence[str], address: str) -> bool:
    """Whether an address is in one of the networks; an address that is not known is in none."""
    try:
        given = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(given, ipaddress.IPv6Address) and given.ipv4_mapped is not None:
        given = given.ipv4_mapped
    return any(given in ipaddress.ip_network(item) for item in ranges)


def require_address(ranges: Sequence[str] | None, address: str) -> None:
    """Raise, unless there are no ranges or the address is in one of them."""
    if ranges and not is_inside(ranges, address):
        raise Forbidden("This address is not allowed in the contest; use a computer of the contest network.")
