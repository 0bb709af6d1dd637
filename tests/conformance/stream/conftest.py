"""The streams under test: the in-process driver and Redis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any

import pytest
from redis.asyncio import Redis

from adjudge.stream import MemoryStream, MessageBody, Stream
from adjudge.stream.redis import RedisStream
from tests.support.servers import RedisServer

_ENVIRONMENTS = count(1)


class StreamDriverFixture(ABC):
    """One stream that several roles open, and the damage that tests do to it."""

    @abstractmethod
    def open(self, *, maxlen: int = 200_000) -> Stream:
        """Open it once more."""

    @abstractmethod
    async def flush(self) -> None:
        """Lose everything."""

    @abstractmethod
    async def add_without(self, field: str, job_id: str) -> None:
        """Add a message of the ordinary band that lacks ``field``."""

    @abstractmethod
    async def spoil_payload(self, job_id: str) -> None:
        """Publish a message whose payload is gone."""


class MemorySide(StreamDriverFixture):
    def __init__(self) -> None:
        self.stream: MemoryStream | None = None

    def open(self, *, maxlen: int = 200_000) -> MemoryStream:
        self.stream = self.stream or MemoryStream(maxlen=maxlen)
        return self.stream

    async def flush(self) -> None:
        self.open().flush()

    async def add_without(self, field: str, job_id: str) -> None:
        self.open().add_defective(2, "missing_field", None if field == "job_id" else job_id)

    async def spoil_payload(self, job_id: str) -> None:
        self.open().add_defective(2, "payload_missing_or_invalid", job_id)


class RedisSide(StreamDriverFixture):
    def __init__(self, server: RedisServer) -> None:
        self.environment = f"test-{next(_ENVIRONMENTS)}"
        self.url = server.url
        self.raw = Redis.from_url(server.url, decode_responses=True, protocol=2)
        self.streams: list[RedisStream] = []

    def open(self, *, maxlen: int = 200_000) -> RedisStream:
        self.streams.append(RedisStream(self.url, environment=self.environment, maxlen=maxlen))
        return self.streams[-1]

    def key(self, band: int = 2) -> str:
        return f"adjudge:{self.environment}:jobs:{band}"

    async def flush(self) -> None:
        await self.raw.flushall()

    async def add_without(self, field: str, job_id: str) -> None:
        fields: Any = {"job_id": job_id, "enqueue_ts": "1", "payload_ref": "nowhere", "priority": "2"}
        del fields[field]
        await self.raw.xadd(self.key(), fields)

    async def spoil_payload(self, job_id: str) -> None:
        await self.open().publish([hint(job_id)])
        for key in await self.raw.keys(f"adjudge:{self.environment}:payload:{job_id}:*"):
            await self.raw.delete(key)

    async def close(self) -> None:
        for stream in self.streams:
            await stream.close()
        await self.raw.aclose()


def hint(job_id: str, priority: int = 2) -> MessageBody:
    return MessageBody(
        job_id, priority, "judge", "trace-1", {"submission_id": f"s-{job_id}", "revision": 3, "chain": None}
    )


@pytest.fixture
def hint_of() -> Callable[..., MessageBody]:
    return hint


@pytest.fixture
async def redis_side(redis_server: RedisServer) -> AsyncIterator[RedisSide]:
    side = RedisSide(redis_server)
    yield side
    await side.close()


@pytest.fixture(params=["memory", "redis"])
async def side(request: pytest.FixtureRequest) -> AsyncIterator[StreamDriverFixture]:
    if request.param == "memory":
        yield MemorySide()
        return
    redis_side = RedisSide(request.getfixturevalue("redis_server"))
    yield redis_side
    await redis_side.close()
