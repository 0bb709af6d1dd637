"""What httpx's errors mean for servers that Adjudge is built on: the table of its exception classes.

Calls that a user asked for (webhooks, the ``http`` executor) fail as such and are tried again by the rules of their
job, whatever the class.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import httpx

from adjudge.domain.reactions import Reaction, Reactions

REACTIONS: Final[Reactions] = MappingProxyType(
    {
        httpx.HTTPError: Reaction.FATAL,
        httpx.TransportError: Reaction.WAIT,  # no connection, no answer in time, an answer that is no HTTP
        httpx.LocalProtocolError: Reaction.FATAL,
        httpx.UnsupportedProtocol: Reaction.FATAL,
        httpx.DecodingError: Reaction.WAIT,
        httpx.TooManyRedirects: Reaction.REFUSE,
        httpx.HTTPStatusError: Reaction.REFUSE,  # 5xx is looked at before: that is waited out
        httpx.InvalidURL: Reaction.REFUSE,
        httpx.CookieConflict: Reaction.FATAL,
        httpx.StreamError: Reaction.FATAL,
        OSError: Reaction.WAIT,
    }
)
"""Exception class of httpx → reaction."""
