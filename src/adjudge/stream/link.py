"""How Redis is reached, and what its failures mean: the same for whoever speaks to it.

What belongs here: the address, the options of a connection, the translation of errors. What does not: keys and scripts.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, AuthorizationError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from adjudge.domain.errors import AdjudgeError, InternalFault, InvalidInput, Unavailable

_COMMAND_TIMEOUT_SEC: Final = 10.0
_ENVIRONMENT: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_PASSING: Final = (
    "OOM",
    "READONLY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "LOADING",
    "BUSY ",
    "MISCONF",
    "NOREPLICAS",
    "TRYAGAIN",
)
"""What Redis answers when it cannot serve now and may later."""
_LOCKED: Final = ("NOAUTH", "WRONGPASS", "NOPERM", "unauthenticated")
"""What it answers to those who may not."""


class Link:
    """One Redis, and one environment's corner of it."""

    def __init__(self, url: str, *, environment: str) -> None:
        self._url, self._place = url, _place(url)
        if not _ENVIRONMENT.fullmatch(environment):
            raise InvalidInput(
                f"environment: {environment!r} must be small letters, digits and -.", field="environment"
            )
        self.prefix = f"adjudge:{environment}:"
        """What every key of this environment begins with."""

    def connect(self, **options: Any) -> Redis:
        """A client of its own."""
        defaults: dict[str, Any] = {
            "decode_responses": True,
            "encoding_errors": "replace",  # one unreadable payload must not spoil the reply for its neighbours
            "protocol": 2,
            # ``calling`` bounds a command. The client's own way to do so is ``asyncio.wait_for``, which in Python 3.11
            # swallows a cancelation that comes as it ends: who was told to stop would go on for ever.
            "socket_timeout": None,
            "socket_connect_timeout": 5.0,
            "health_check_interval": 0,
            # A command whose answer was lost may have taken messages: trying it again is the caller's decision.
            "retry": Retry(NoBackoff(), 0),
        }
        return Redis.from_url(self._url, **(defaults | options))

    @asynccontextmanager
    async def calling(self, patience_sec: float = _COMMAND_TIMEOUT_SEC) -> AsyncIterator[None]:
        """Say in our own words what goes wrong inside, an answer that does not come among it."""
        with self.reporting():
            async with asyncio.timeout(patience_sec):
                yield

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Say in our own words what goes wrong inside."""
        try:
            yield
        except (RedisError, OSError) as error:
            raise _failure(error, self._place) from error


def _place(url: str) -> str:
    """Host, port and database: what an error may say of a URL that holds a password."""
    try:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port or 6379}{parts.path}" if parts.hostname else parts.path
    except ValueError:
        parts, place = urlsplit(""), ""
    if parts.scheme not in {"redis", "rediss", "unix"} or not place:
        raise InvalidInput(
            "redis_url: give redis://USER:PASSWORD@HOST:PORT/NUMBER, or rediss:// for TLS.", field="redis_url"
        )
    return place


def _failure(error: Exception, place: str) -> AdjudgeError:
    words = str(error)
    if isinstance(error, AuthenticationError | AuthorizationError) or any(code in words for code in _LOCKED):
        return Unavailable(f"Redis at {place} refused our credentials: check the URL's user and password.")
    if isinstance(error, RedisConnectionError | RedisTimeoutError | OSError):
        return Unavailable(f"Redis at {place} is away ({type(error).__name__}).")
    if any(code in words for code in _PASSING):
        return Unavailable(f"Redis at {place} cannot serve: {words[:200]}")
    return InternalFault(f"Redis at {place} did not understand us: {words[:200]}")
