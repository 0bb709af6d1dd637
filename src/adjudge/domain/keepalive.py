"""TCP keepalive options: detect a peer that disappeared without closing the connection."""

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
"""TCP option → seconds (milliseconds for the last). A peer that is silent for about 30 s, or does not acknowledge data
within 15 s, is disconnected."""

SOCKET_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *((socket.IPPROTO_TCP, option, value) for option, value in KEEPALIVE.items()),
)
"""The same as arguments of ``setsockopt``."""
