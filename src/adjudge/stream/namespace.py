"""The owner of a Redis namespace: one key has the id of the installation that uses it."""

from __future__ import annotations

from adjudge.domain.errors import InvalidInput
from adjudge.stream.redis_connection import TIMEOUT_SEC, RedisConnection


async def take_namespace(url: str, *, environment: str, installation_id: str, timeout_sec: float = TIMEOUT_SEC) -> None:
    """Reserve the namespace for this installation; raises if another installation has it.

    Two installations in one namespace would read and acknowledge each other's messages.
    """
    link = RedisConnection(url, environment=environment, timeout_sec=timeout_sec)
    key = f"{link.prefix}installation"
    client = link.connect()
    try:
        async with link.translate_errors(), client.pipeline(transaction=False) as pipeline:
            pipeline.set(key, installation_id, nx=True)
            pipeline.get(key)
            _, owner = await pipeline.execute()
    finally:
        await client.aclose()
    if owner not in (installation_id, None):  # None: flushed just now; the next process to start reserves it
        raise InvalidInput(
            f"server.environment: the Redis namespace {link.prefix}* at {link.place} is used by another installation "
            f"({owner}; the database of this one is {installation_id}). Give this one a name of its own with "
            "ADJUDGE_ENVIRONMENT, or another Redis with ADJUDGE_REDIS_URL. If the other installation is gone, as after "
            f"moving to a new database, stop its processes and take the namespace over: redis-cli DEL {key}",
            field="server.environment",
        )
