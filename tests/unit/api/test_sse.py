"""Event streams: only so many, and none outlives the credential that opened it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Role
from adjudge.store import Tx
from adjudge.store.accounts import api_tokens, sessions, users
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.store_harness import StoreHarness

WATCH = "/api/v1/me/events"
HOUR_US = 3_600_000_000


async def seated(api: AsgiApp, count: int) -> None:
    """Wait until so many watch."""
    async with asyncio.timeout(120):
        while len(api.services.connections) != count:
            await asyncio.sleep(0.005)


async def opened(api: AsgiApp, client: httpx.AsyncClient, path: str = WATCH) -> asyncio.Task[httpx.Response]:
    """A stream that is being read; its answer comes when it ends."""
    reading = asyncio.create_task(client.get(path))
    await seated(api, len(api.services.connections) + 1)
    return reading


async def ended(reading: asyncio.Task[httpx.Response]) -> str:
    async with asyncio.timeout(120):
        answer = await reading
    assert answer.status_code == 200
    return answer.text


def disabled(user_id: str) -> Callable[[Tx], Awaitable[object]]:
    return lambda tx: users.set_disabled(tx, user_id, disabled=True)


def revoked(user_id: str) -> Callable[[Tx], Awaitable[object]]:
    return lambda tx: api_tokens.revoke_all(tx, user_id)


def demoted(user_id: str) -> Callable[[Tx], Awaitable[object]]:
    return lambda tx: users.update_role(tx, user_id, Role.SERVICE)


@pytest.mark.parametrize("change", [disabled, revoked, demoted])
async def test_a_stream_ends_with_the_right_to_it(
    api_on_both: AsgiApp, change: Callable[[str], Callable[[Tx], Awaitable[object]]]
) -> None:
    api = api_on_both
    user_id, secret = await api.user("judge")
    _, other = await api.user("judge")
    async with api.client(secret) as client, api.client(other) as bystander:
        reading, untouched = await opened(api, client, "/api/v1/events"), await opened(api, bystander)
        await api.store.transact(change(user_id))
        assert (await ended(reading)).endswith('event: reconnect\ndata: {"reason":"credential"}\n\n')
        await seated(api, 1)
        assert not untouched.done()
        untouched.cancel()
        await seated(api, 0)
        api.services.credentials.invalidate_user(user_id)
        again = await client.get("/api/v1/events")
        assert again.status_code == (403 if change is demoted else 401)


async def test_a_stream_ends_with_its_session(api_on_both: AsgiApp) -> None:
    api = api_on_both
    user_id, _ = await api.user("contestant")
    secret, session_id = api_tokens.new_secret(), new_id()
    opening = sessions.NewSession(session_id, user_id, secret, HOUR_US, HOUR_US)
    await api.store.transact(lambda tx: sessions.insert(tx, opening))
    async with api.client(cookies={"adjudge_session": secret}) as client:
        reading = await opened(api, client)
        await api.store.transact(lambda tx: sessions.revoke(tx, user_id, session_id))
        assert "reconnect" in await ended(reading)


async def test_a_stream_ends_when_its_token_expires(api: AsgiApp) -> None:
    user_id, _ = await api.user("contestant")
    secret = api_tokens.new_secret()
    short = api_tokens.NewApiToken(new_id(), user_id, "short", secret, ttl_us=HOUR_US)
    await api.store.transact(lambda tx: api_tokens.insert(tx, short))
    async with api.client(secret) as client:
        reading = await opened(api, client)
        await api.store.clock.advance(3_600_001)
        assert "reconnect" in await ended(reading)


async def test_one_user_has_so_many_streams_and_no_more(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(sqlite_store, tmp_path, {"server.streams_per_user": 2}) as api:
        _, secret = await api.user("contestant")
        async with api.client(secret) as client, api.as_role("contestant") as other:
            first, second = await opened(api, client), await opened(api, client)
            refused = await client.get(WATCH)
            assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_STREAMS")
            assert int(refused.headers["Retry-After"]) > 0
            theirs = await opened(api, other)
            first.cancel()
            await seated(api, 2)
            third = await opened(api, client)
            for reading in (second, theirs, third):
                reading.cancel()
            await seated(api, 0)


async def test_one_server_has_so_many_streams_and_no_more(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with (
        make_app(sqlite_store, tmp_path, {"server.streams_most": 1}) as api,
        api.as_role("contestant") as client,
        api.as_role("contestant") as other,
    ):
        reading = await opened(api, client)
        refused = await other.get(WATCH)
        assert (refused.status_code, refused.json()["code"]) == (429, "TOO_MANY_STREAMS")
        reading.cancel()
        await seated(api, 0)
