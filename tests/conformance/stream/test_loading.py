"""A Redis that is loading its data after a restart is waited for."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from redis.asyncio import Redis

from adjudge.domain.errors import Unavailable
from adjudge.stream import MessageBody
from adjudge.stream.redis import RedisStream
from tests.support.servers import RedisServer


class SlowLoader(RedisServer):
    """Takes a while for each key that it loads, and answers meanwhile."""

    def command(self, binary: Path) -> Sequence[str]:
        # Not compressed: it answers after a number of bytes of its file.
        slow = [
            "--rdbcompression",
            "no",
            "--key-load-delay",
            "100000",
            "--loading-process-events-interval-bytes",
            "1024",
        ]
        version = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout
        debug = [] if "v=6." in version else ["--enable-debug-command", "yes"]  # before 7 it is always allowed
        return [*super().command(binary), *debug, *slow]


@pytest.mark.slow
async def test_loading_redis_is_unavailable_then_works() -> None:
    server = SlowLoader().start()
    redis: Redis = Redis.from_url(server.url)
    stream = RedisStream(server.url, environment="loading")
    try:
        await stream.publish([MessageBody("before", 2, "judge", None, {})])
        await redis.mset({f"filler:{number}": "x" * 2_048 for number in range(30)})
        loading = asyncio.create_task(redis.execute_command("DEBUG", "RELOAD"))  # type: ignore[no-untyped-call]
        refused: Unavailable | None = None
        while not loading.done():
            try:
                await stream.depths()
            except Unavailable as error:
                refused = error
                await asyncio.sleep(0.05)  # the reloading server should not be asked all the time
        await loading
        assert refused is not None
        assert "loading" in refused.message.lower()
        assert (await stream.depths())[2] == 1
    finally:
        await stream.close()
        await redis.aclose()
        server.stop()
