"""Reactions to the errors of httpx, for servers that Adjudge depends on.

Calls on behalf of users (webhooks, the ``http`` executor) are retried by the rules of their job instead.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import httpx

from adjudge.domain.reactions import Reaction, Reactions

REACTIONS: Final[Reactions] = MappingProxyType(
    {
        httpx.HTTPError: Reaction.FATAL,
        httpx.TransportError: Reaction.WAIT,  # no connection, timeout, invalid HTTP
        httpx.LocalProtocolError: Reaction.FATAL,
        httpx.UnsupportedProtocol: Reaction.FATAL,
        httpx.DecodingError: Reaction.WAIT,
        httpx.TooManyRedirects: Reaction.REFUSE,
        httpx.HTTPStatusError: Reaction.REFUSE,  # 5xx is handled before: it is waited for
        httpx.InvalidURL: Reaction.REFUSE,
        httpx.CookieConflict: Reaction.FATAL,
        httpx.StreamError: Reaction.FATAL,
        OSError: Reaction.WAIT,
    }
)
"""Exception class of httpx → reaction."""
