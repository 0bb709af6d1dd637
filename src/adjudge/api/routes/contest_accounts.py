"""Accounts that were made for a contest. Generated passwords are in the response once; only hashes are stored."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from adjudge.api.pagination import DEFAULT_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routes.contest_jury import Judge
from adjudge.api.routes.contests import Member
from adjudge.api.routing import api_router
from adjudge.api.schema.contest_participants import (
    AccountNames,
    AccountsCreate,
    AccountsSwitch,
    ContestTokensCreate,
    read_account,
    read_card,
)
from adjudge.schema.contest_participants import (
    AccountCardList,
    AccountsChanged,
    ContestAccountPage,
    ContestAccountTokenList,
    ContestAccountTokenRead,
)
from adjudge.services.contest_accounts import ContestAccountService
from adjudge.services.contest_tokens import ContestTokenService

_MAX_LIMIT = 1_000


def router(accounts: ContestAccountService, tokens: ContestTokenService) -> APIRouter:
    """Routes of accounts."""
    routes = api_router("contest participants", "/contests")

    @routes.get("/{contest}/accounts", summary="List the accounts that were made for a contest")
    async def page(
        contest: str,
        viewer: Member,
        limit: Annotated[int, Query(ge=1, le=_MAX_LIMIT)] = DEFAULT_LIMIT,
        cursor: Annotated[str | None, Query(max_length=2048)] = None,
    ) -> ContestAccountPage:
        position = decode_cursor(cursor, [str])
        after = str(position[0]) if position else ""
        _, found = await accounts.list_accounts(viewer, contest, after=after, limit=limit)
        more = encode_cursor([found[-1].user_name]) if len(found) == limit else None
        return ContestAccountPage(items=[read_account(item) for item in found], next=more)

    @routes.post(
        "/{contest}/accounts:create",
        status_code=201,
        summary="Make accounts for teams",
        description="One for each given team, else one for each team without members. Passwords are generated.",
    )
    async def create(contest: str, body: AccountsCreate, viewer: Judge) -> AccountCardList:
        cards = await accounts.create(viewer, contest, prefix=body.prefix, participants_given=body.participants)
        return AccountCardList(items=[read_card(item) for item in cards])

    @routes.post(
        "/{contest}/accounts:renew-passwords",
        summary="Generate new passwords",
        description="Of the named accounts, else of all without a role. Their sessions and tokens are revoked.",
    )
    async def renew(contest: str, body: AccountNames, viewer: Judge) -> AccountCardList:
        cards = await accounts.renew_passwords(viewer, contest, body.names)
        return AccountCardList(items=[read_card(item) for item in cards])

    @routes.post(
        "/{contest}/accounts:disable",
        summary="Disable accounts of a contest",
        description="The named ones, else all without a role in the contest. Their sessions and tokens do not work.",
    )
    async def disable(contest: str, body: AccountsSwitch, viewer: Judge) -> AccountsChanged:
        changed = await accounts.set_disabled(viewer, contest, disabled=True, names=body.names, reason=body.reason)
        return AccountsChanged(changed=changed)

    @routes.post("/{contest}/accounts:enable", summary="Enable accounts of a contest")
    async def enable(contest: str, body: AccountsSwitch, viewer: Judge) -> AccountsChanged:
        changed = await accounts.set_disabled(viewer, contest, disabled=False, names=body.names, reason=body.reason)
        return AccountsChanged(changed=changed)

    @routes.post(
        "/{contest}/accounts:create-tokens",
        status_code=201,
        summary="Create an API token for each account of a participant",
        description="For rehearsals. Accounts with a role, disabled ones and those bound to a network get none.",
    )
    async def create_tokens(contest: str, body: ContestTokensCreate, viewer: Judge) -> ContestAccountTokenList:
        made = await tokens.create_tokens(viewer, contest, name=body.name, expires_in_hours=body.expires_in_hours)
        return ContestAccountTokenList(items=[ContestAccountTokenRead.of(item) for item in made])

    return routes
