"""How Redis is reached: the same for whoever speaks to it.

What belongs here: the address, the options of a connection, its time limits. What does not: keys and scripts, and what
errors mean (``failures``).
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
from redis.exceptions import RedisError

from adjudge.domain.errors import InvalidInput
from adjudge.domain.keepalive import KEEPALIVE
from adjudge.stream.failures import translated

TIMEOUT_SEC: Final = 10.0
_ENVIRONMENT: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


class RedisConnection:
    """One Redis, and one environment's corner of it."""

    def __init__(self, url: str, *, environment: str, timeout_sec: float = TIMEOUT_SEC) -> None:
        self._url, self.place = url, _place(url)
        self._timeout_sec = timeout_sec
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
            "socket_connect_timeout": min(5.0, self._timeout_sec),
            "health_check_interval": 0,
            # A command whose answer was lost may have taken messages: trying it again is the caller's decision.
            "retry": Retry(NoBackoff(), 0),
        }
        if not self._url.startswith("unix:"):
            defaults |= {"socket_keepalive": True, "socket_keepalive_options": dict(KEEPALIVE)}
        return Redis.from_url(self._url, **(defaults | options))

    @asynccontextmanager
    async def translate_errors(self, patience_sec: float | None = None) -> AsyncIterator[None]:
        """Say in our own words what goes wrong inside, an answer that does not come among it."""
        with self.translate_errors_sync():
            async with asyncio.timeout(patience_sec or self._timeout_sec):
                yield

    @contextmanager
    def translate_errors_sync(self) -> Iterator[None]:
        """Say in our own words what goes wrong inside."""
        try:
            yield
        except (RedisError, OSError) as error:
            raise translated(error, self.place) from error


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
