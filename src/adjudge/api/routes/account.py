"""The user's own account."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from adjudge.api.auth import require_permission
from adjudge.api.routes.login import account_read
from adjudge.api.routing import api_router
from adjudge.api.schema.account import AccountUpdate, PasswordChangeRequest, TokenCreate
from adjudge.domain.permissions import Permission
from adjudge.schema.account import AccountRead, SessionList, SessionRead, TokenCreated, TokenList, TokenRead
from adjudge.services.account import AccountService
from adjudge.services.viewer import Viewer

Own = Annotated[Viewer, require_permission(Permission.ACCOUNT_OWN)]
Id = Annotated[str, Path(max_length=64)]


def router(accounts: AccountService) -> APIRouter:
    routes = api_router("account")

    @routes.get("/me", summary="Get your account and permissions")
    async def me(viewer: Own) -> AccountRead:
        return account_read(await accounts.get_account(viewer), viewer)

    @routes.patch("/me", summary="Update your profile")
    async def patch_me(viewer: Own, patch: AccountUpdate) -> AccountRead:
        changes = patch.model_dump(include=patch.model_fields_set)
        return account_read(await accounts.update_account(viewer, changes), viewer)

    @routes.post("/me:password", status_code=204, summary="Change your password; ends other sessions and tokens")
    async def change_password(viewer: Own, change: PasswordChangeRequest) -> None:
        await accounts.change_password(
            viewer, current=change.current, new=change.new, revoke_tokens=change.revoke_tokens
        )

    @routes.get("/me/tokens", summary="List your API tokens")
    async def my_tokens(viewer: Own) -> TokenList:
        return TokenList(items=[TokenRead.of(token) for token in await accounts.list_tokens(viewer)])

    @routes.post("/me/tokens", status_code=201, summary="Create an API token; the secret is shown once")
    async def create_token(viewer: Own, order: TokenCreate) -> TokenCreated:
        made = await accounts.create_token(
            viewer, name=order.name, scopes=order.scopes, expires_in_days=order.expires_in_days
        )
        return TokenCreated.of(made.token, secret=made.secret)

    @routes.delete("/me/tokens/{token_id}", status_code=204, summary="Revoke an API token")
    async def revoke_token(viewer: Own, token_id: Id) -> None:
        await accounts.revoke_token(viewer, token_id)

    @routes.get("/me/sessions", summary="List your active sessions")
    async def my_sessions(viewer: Own) -> SessionList:
        found = await accounts.list_sessions(viewer)
        return SessionList(items=[SessionRead.of(item, current=item.id == viewer.credential_id) for item in found])

    @routes.delete("/me/sessions/{session_id}", status_code=204, summary="End a session")
    async def revoke_session(viewer: Own, session_id: Id) -> None:
        await accounts.revoke_session(viewer, session_id)

    return routes
