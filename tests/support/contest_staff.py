"""Clients of a contest's staff, of its first participants, and of people who are not in it."""

from __future__ import annotations

from contextlib import AsyncExitStack

import httpx

from adjudge.domain.contest import ContestRole
from adjudge.store import Tx
from adjudge.store.accounts import api_tokens
from adjudge.store.contests import commands
from tests.support.asgi_app import AsgiApp
from tests.support.contest_fixture import ContestFixture


async def open_clients(api: AsgiApp, contest: ContestFixture, stack: AsyncExitStack) -> dict[str, httpx.AsyncClient]:
    """By role in the contest; also ``visitor``, ``nobody`` (no role), ``participant`` and ``other``."""
    clients = {"visitor": await stack.enter_async_context(api.client())}
    roles: list[tuple[str, ContestRole]] = []
    for name in (*ContestRole, "nobody"):
        user_id, secret = await api.user("contestant")
        clients[str(name)] = await stack.enter_async_context(api.client(secret))
        if isinstance(name, ContestRole):
            roles.append((user_id, name))
    organiser = roles[0][0]
    tokens = {name: api_tokens.new_secret() for name in ("participant", "other")}

    async def operation(tx: Tx) -> None:
        await commands.grant_roles(tx, contest.contest_id, roles, actor=organiser, granted_by=organiser)
        for participant_id, (name, secret) in zip(contest.participants, tokens.items(), strict=False):
            new = api_tokens.NewApiToken(f"t-{name}", contest.users[participant_id], name, secret, ("*",))
            await api_tokens.insert(tx, new)

    await api.store.transact(operation)
    for name, secret in tokens.items():
        clients[name] = await stack.enter_async_context(api.client(secret))
    return clients
