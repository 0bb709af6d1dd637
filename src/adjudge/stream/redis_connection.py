"""Redis connections: URL, connection options and timeouts. ``failures`` classifies errors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from redis import exceptions as errors
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from adjudge.domain.errors import InvalidInput
from adjudge.domain.keepalive import KEEPALIVE
from adjudge.stream.failures import translated

TIMEOUT_SEC: Final = 10.0
_CLOSING: Final = (
    errors.ConnectionError,
    errors.TimeoutError,
    errors.ReadOnlyError,
    errors.MasterDownError,
    errors.ClusterDownError,
    errors.AskError,
)
"""Errors after which a connection is closed. A server that has become a replica keeps its connections open; the next
one may lead to the new primary. ``MovedError`` is an ``AskError``."""
_ENVIRONMENT: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


class RedisConnection:
    """One Redis and the namespace of one environment."""

    def __init__(self, url: str, *, environment: str, timeout_sec: float = TIMEOUT_SEC) -> None:
        self._url, self.place = url, _endpoint(url)
        self._timeout_sec = timeout_sec
        if not _ENVIRONMENT.fullmatch(environment):
            raise InvalidInput(
                f"environment: {environment!r} must be lowercase letters, digits and -.", field="environment"
            )
        self.prefix = f"adjudge:{environment}:"
        """The prefix of all keys of this environment."""

    def connect(self, **options: Any) -> Redis:
        defaults: dict[str, Any] = {
            "decode_responses": True,
            "encoding_errors": "replace",  # one undecodable payload must not invalidate the whole reply
            "protocol": 2,
            # ``translate_errors`` bounds a command. The client's own timeout uses ``asyncio.wait_for``, which in 3.11
            # swallows a cancellation that arrives as it ends, so a canceled task would continue forever.
            "socket_timeout": None,
            "socket_connect_timeout": min(5.0, self._timeout_sec),
            "health_check_interval": 0,
            # A command whose reply was lost may have taken messages: the caller decides whether to repeat it.
            "retry": Retry(NoBackoff(), 0, supported_errors=_CLOSING),
        }
        if not self._url.startswith("unix:"):
            defaults |= {"socket_keepalive": True, "socket_keepalive_options": dict(KEEPALIVE)}
        return Redis.from_url(self._url, **(defaults | options))

    @asynccontextmanager
    async def translate_errors(self, patience_sec: float | None = None) -> AsyncIterator[None]:
        """Convert errors and timeouts inside the block."""
        with self.translate_errors_sync():
            async with asyncio.timeout(patience_sec or self._timeout_sec):
                yield

    @contextmanager
    def translate_errors_sync(self) -> Iterator[None]:
        """Convert errors inside the block."""
        try:
            yield
        except (RedisError, OSError) as error:
            raise translated(error, self.place) from error


def _endpoint(url: str) -> str:
    """Host, port and database: the part of a URL that may be logged."""
    try:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port or 6379}{parts.path}" if parts.hostname else parts.path
    except ValueError:
        parts, place = urlsplit(""), ""
    if parts.scheme not in {"redis", "rediss", "unix"} or not place:
        raise InvalidInput(
            "redis_url: must be redis://USER:PASSWORD@HOST:PORT/NUMBER, or rediss:// for TLS.", field="redis_url"
        )
    return place
