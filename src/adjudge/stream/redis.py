"""The Redis Streams driver: one stream per band, one consumer group, payloads in keys with a TTL.

Redis only has messages: what it loses, the reconciler publishes again from the database. So it may be flushed,
restarted or replaced at any time, and this driver creates its groups again if they are gone.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from redis.commands.core import AsyncScript
from redis.exceptions import RedisError, ResponseError

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.priority import BANDS, band_of
from adjudge.stream import codec, redis_scripts
from adjudge.stream.blocking_read import BlockingReader, Found
from adjudge.stream.driver import Message, MessageBody, PublishResult
from adjudge.stream.failures import code_of, is_waited_out
from adjudge.stream.fair_share import FairShare
from adjudge.stream.redis_connection import TIMEOUT_SEC, RedisConnection

_ROWS_PER_CALL: Final = 500
"""A script blocks Redis while it runs: a long list is published in several calls."""
_SLACK_SEC: Final = 0.05
_NO_STREAM: Final = frozenset({"NOGROUP", "WRONGTYPE"})
_FORGOTTEN_MS: Final = 86_400_000
"""A consumer without pending messages that was not seen for this long is dead."""


class RedisStream:
    """Messages in Redis, scoped by environment: ``adjudge:ENV:jobs:BAND``, group ``adjudge:ENV:workers``."""

    def __init__(
        self,
        url: str,
        *,
        environment: str,
        maxlen: int = 200_000,
        payload_ttl_sec: int = 86_400,
        group: str | None = None,
        timeout_sec: float = TIMEOUT_SEC,
    ) -> None:
        self._connection = RedisConnection(url, environment=environment, timeout_sec=timeout_sec)
        self._keys = [f"{self._connection.prefix}jobs:{band}" for band in BANDS]
        self._band_of_key = dict(zip(self._keys, BANDS, strict=True))
        self._payload_prefix = f"{self._connection.prefix}payload:"
        self._group = group or f"{self._connection.prefix}workers"
        self._maxlen, self._payload_ttl_sec = maxlen, payload_ttl_sec
        self._client = self._connection.connect()
        self._publish = self._client.register_script(redis_scripts.PUBLISH)
        self._take = self._client.register_script(redis_scripts.READ)
        self._autoclaim = self._client.register_script(redis_scripts.AUTOCLAIM)
        self._ack = self._client.register_script(redis_scripts.ACK)
        self._release_script = self._client.register_script(redis_scripts.RELEASE)
        self._leave = self._client.register_script(redis_scripts.DELETE_CONSUMERS)
        self._consumers: set[str] = set()
        self._waiters: dict[str, BlockingReader] = {}
        self._kept: dict[str, list[asyncio.Task[list[Message]]]] = {}
        self._turns = FairShare()
        self._cursors = ["0-0"] * len(BANDS)
        self._first_to_reclaim = 0

    async def publish(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        """Store each payload, then add its entry; one round trip per 500 messages."""
        outcomes: list[PublishResult] = []
        for start in range(0, len(hints), _ROWS_PER_CALL):
            outcomes += await self._publish_some(hints[start : start + _ROWS_PER_CALL])
        return outcomes

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        """Read what is available in one round trip; if there is nothing, wait on a separate connection.

        Redis delivers a message before we have its reply. A caller that is cancelled in between would leave it pending,
        so the read is a task that outlives its caller: its messages go to the consumer's next read, or back to the
        stream on ``close``.
        """
        if limit < 1:
            return []
        self._consumers.add(consumer)
        kept = self._kept[consumer].pop() if self._kept.get(consumer) else None
        if kept is not None and (not kept.done() or kept.exception() or kept.result()):
            return await self._outcome(kept, consumer, limit, wait_ms / 1000 + _SLACK_SEC)
        reading = asyncio.create_task(self._read(consumer, limit, wait_ms), name="stream-read")
        return await self._outcome(reading, consumer, limit, None)

    async def ack(self, messages: Sequence[Message]) -> int:
        """Acknowledge and delete, including payloads."""
        if not messages:
            return 0
        rows: list[object] = []
        for message in messages:
            rows += (message.band + 1, message.entry_id, self._own(message.payload_ref))
        return int(await self._run(self._ack, self._group, *rows))

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        """Claim idle messages; this object keeps the cursors, and each call starts with another band."""
        if limit < 1:
            return []
        self._consumers.add(consumer)
        first, self._first_to_reclaim = self._first_to_reclaim, (self._first_to_reclaim + 1) % len(BANDS)
        cursors, rows = await self._run(self._autoclaim, self._group, consumer, idle_ms, limit, first, *self._cursors)
        self._cursors = cursors
        return self._messages(rows)

    async def find_existing(self, entries: Sequence[tuple[int, str | None]]) -> set[tuple[int, str | None]]:
        """Look up each entry by its id, in one round trip."""
        known = [(priority, entry_id) for priority, entry_id in entries if entry_id is not None]
        async with self._connection.translate_errors(), self._client.pipeline(transaction=False) as pipeline:
            for priority, entry_id in known:
                pipeline.xrange(self._keys[band_of(priority)], entry_id, entry_id)
            found = await pipeline.execute(raise_on_error=False)
            for reply in found:
                if isinstance(reply, RedisError) and code_of(str(reply)) not in _NO_STREAM:
                    raise reply
        return {entry for entry, rows in zip(known, found, strict=True) if rows and not isinstance(rows, RedisError)}

    async def pending_counts(self) -> dict[int, int]:
        """Read the summary of each group's pending list; a missing group has nothing pending."""
        return await self._per_band("XPENDING", self._group)

    async def depths(self) -> dict[int, int]:
        """Read the length of each stream: acknowledged entries are deleted, so it is the depth."""
        return await self._per_band("XLEN")

    async def close(self) -> None:
        """Release the messages of cancelled reads, leave the group, disconnect."""
        kept = {task for tasks in self._kept.values() for task in tasks}
        self._kept.clear()
        with suppress(RedisError, OSError, TimeoutError):
            # If Redis is unavailable, what it holds pending for us will be reclaimed.
            async with asyncio.timeout(1):
                await self._end(kept)
        for task in kept:
            task.cancel()
        caught = await asyncio.gather(*kept, return_exceptions=True)
        with suppress(Unavailable):
            await self._release([message for found in caught if isinstance(found, list) for message in found])
            if self._consumers:
                await self._run(self._leave, self._group, _FORGOTTEN_MS, *self._consumers)
        for waiter in self._waiters.values():
            await waiter.close()
        self._waiters.clear()
        await self._client.aclose()

    async def _publish_some(self, hints: Sequence[MessageBody]) -> list[PublishResult]:
        now_ms = time.time_ns() // 1_000_000
        outcomes: list[PublishResult | None] = []
        rows: list[object] = []
        for hint in hints:
            try:
                rows += self._row(codec.check_identifiers_only(hint), now_ms)
                outcomes.append(None)
            except InvalidInput as refused:
                outcomes.append(PublishResult(hint.job_id, None, refused.message, is_final=True))
        answers = iter(await self._run(self._publish, self._maxlen, self._payload_ttl_sec, *rows) if rows else ())
        results = [outcome or _published(hint, next(answers)) for hint, outcome in zip(hints, outcomes, strict=True)]
        if any(result.is_outage for result in results):
            # The script replied, so the connection is still open; a new one may lead to another server.
            await self._client.connection_pool.disconnect(inuse_connections=False)
        return results

    def _row(self, hint: MessageBody, now_ms: int) -> tuple[object, ...]:
        # A key per publication, not per job: acknowledging an old message of a retried job must not
        # delete the payload of its new one.
        payload_ref = f"{self._payload_prefix}{hint.job_id}:{secrets.token_hex(4)}"
        return hint.band + 1, hint.job_id, now_ms, payload_ref, hint.priority, codec.encode(hint)

    async def _outcome(
        self, reading: asyncio.Task[list[Message]], consumer: str, limit: int, patience_sec: float | None
    ) -> list[Message]:
        keep = self._kept.setdefault(consumer, []).append
        try:
            await asyncio.wait({reading}, timeout=patience_sec)
        except asyncio.CancelledError:
            keep(reading)
            raise
        if not reading.done():
            keep(reading)
            return []
        messages = reading.result()
        await self._release(messages[limit:])
        return messages[:limit]

    async def _read(self, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        kept_places = self._turns.reserved_quota(limit)
        rows = await self._run(self._take, self._group, consumer, limit, *kept_places.values())
        if rows or wait_ms < 1:
            return self._messages(rows)
        if consumer not in self._waiters:
            self._waiters[consumer] = BlockingReader(self._connection.connect, self._group, consumer, self._keys)
        with self._connection.translate_errors_sync():
            try:
                found = await self._waiters[consumer].wait(wait_ms)
            except ResponseError as error:
                if code_of(str(error)) not in {"NOGROUP", "UNBLOCKED"}:
                    raise
                return []  # flushed while we waited; the next read creates the groups again
        return await self._with_payloads(found)

    async def _with_payloads(self, found: Found) -> list[Message]:
        refs = [self._own(fields.get("payload_ref")) or self._payload_prefix for _, _, fields in found]
        async with self._connection.translate_errors():
            payloads: list[Any] = await self._client.mget(refs) if refs else []
        return [
            codec.decode(entry_id, self._band_of_key[key], fields, payload)
            for (key, entry_id, fields), payload in zip(found, payloads, strict=True)
        ]

    async def _release(self, messages: Sequence[Message]) -> None:
        if messages:
            rows = [value for message in messages for value in (message.band + 1, message.entry_id)]
            await self._run(self._release_script, self._group, self._maxlen, *rows)

    async def _end(self, reads: set[asyncio.Task[list[Message]]]) -> None:
        """Unblock reads until they have ended; one that was about to block is unblocked by the next call."""
        while any(not read.done() for read in reads):
            for waiter in self._waiters.values():
                await waiter.unblock(self._client)
            await asyncio.wait(reads, timeout=0.02)

    async def _per_band(self, command: str, *arguments: object) -> dict[int, int]:
        async with self._connection.translate_errors():
            async with self._client.pipeline(transaction=False) as pipeline:
                for key in self._keys:
                    pipeline.execute_command(command, key, *arguments)
                replies = await pipeline.execute(raise_on_error=False)
            return dict(zip(BANDS, map(_count, replies), strict=True))

    async def _run(self, script: AsyncScript, *arguments: Any) -> Any:
        async with self._connection.translate_errors():
            return await script(keys=self._keys, args=arguments)

    def _messages(self, rows: list[list[Any]]) -> list[Message]:
        messages = []
        for band_index, entry_id, deliveries, payload, *flat in rows:
            fields = dict(zip(flat[::2], flat[1::2], strict=True))
            messages.append(codec.decode(entry_id, band_index - 1, fields, payload, deliveries=deliveries))
        return sorted(messages, key=lambda message: message.band)

    def _own(self, payload_ref: str | None) -> str:
        """The key if it is one of our payloads; a corrupt entry must not make us delete another key."""
        return payload_ref if payload_ref and payload_ref.startswith(self._payload_prefix) else ""


def _published(hint: MessageBody, answer: str) -> PublishResult:
    if answer.startswith("!"):
        return PublishResult(
            hint.job_id, None, f"Redis refused it: {answer[1:200]}", is_outage=is_waited_out(answer[1:])
        )
    return PublishResult(hint.job_id, answer)


def _count(reply: Any) -> int:
    """The value of a band; 0 without a group, or if the key is not a stream, so that the others are still counted."""
    if isinstance(reply, ResponseError):
        if code_of(str(reply)) in _NO_STREAM:
            return 0
        raise reply
    return int(reply["pending"] if isinstance(reply, dict) else reply)
