"""How the kernel finds out that the other end of a connection has vanished without closing it."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

KEEPALIVE: Final[Mapping[int, int]] = MappingProxyType(
    {
        socket.TCP_KEEPIDLE: 15,
        socket.TCP_KEEPINTVL: 5,
        socket.TCP_KEEPCNT: 3,
        socket.TCP_USER_TIMEOUT: 15_000,
    }
)
"""TCP option → seconds (milliseconds for the last): a peer that is silent for about 30 s is given up, and so is one
that does not acknowledge what was sent within 15 s."""

SOCKET_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, option, value) for option, value in KEEPALIVE.items()),
)
"""The same as arguments of ``setsockopt``."""
