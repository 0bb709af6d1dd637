"""Administration of users and invitations."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query

from adjudge.api.auth import require_permission
from adjudge.api.pagination import DEFAULT_LIMIT, MAX_LIMIT, decode_cursor, encode_cursor
from adjudge.api.routing import api_router
from adjudge.api.schema.users import InvitationCreate, ReasonBody, UserCreate, UserUpdate
from adjudge.domain.permissions import Permission, Role
from adjudge.schema.account import UserRead
from adjudge.schema.users import InvitationCreated, InvitationPage, InvitationRead, UserCreated, UserPage
from adjudge.services.users import UserService, UserSpec
from adjudge.services.viewer import Viewer

Reader = Annotated[Viewer, require_permission(Permission.USER_READ)]
Writer = Annotated[Viewer, require_permission(Permission.USER_WRITE)]
Id = Annotated[str, Path(max_length=64)]
Cursor = Annotated[str | None, Query(max_length=2048, description="The `next` value of the previous page.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
_AFTER_ALL_IDS: Final = "g"


def router(users: UserService) -> APIRouter:
    routes = api_router("users")
    _add_users(routes, users)
    _add_invitations(routes, users)
    return routes


def _add_users(routes: APIRouter, users: UserService) -> None:
    @routes.get("/users", summary="List users")
    async def list_users(
        _viewer: Reader,
        search: Annotated[str, Query(max_length=64, description="Filter by name.")] = "",
        role: Role | None = None,
        cursor: Cursor = None,
        limit: Limit = DEFAULT_LIMIT,
    ) -> UserPage:
        place = decode_cursor(cursor, [str])
        after = str(place[0]) if place else ""
        found = await users.list_users(search=search, role=role or "", after=after, limit=limit + 1)
        more = encode_cursor([found[limit - 1].name]) if len(found) > limit else None
        return UserPage(items=[UserRead.of(user) for user in found[:limit]], next=more)

    @routes.post("/users", status_code=201, summary="Create a user")
    async def create_user(viewer: Writer, body: UserCreate) -> UserCreated:
        order = UserSpec(body.name, body.role, body.email, body.display_name, body.password)
        return UserCreated.of(await users.create_user(order, actor=viewer.id))

    @routes.get("/users/{user_id}", summary="Get a user")
    async def find_user(_viewer: Reader, user_id: Id) -> UserRead:
        return UserRead.of(await users.get_user(user_id))

    @routes.patch("/users/{user_id}", summary="Change the role of a user")
    async def patch_user(viewer: Writer, user_id: Id, patch: UserUpdate) -> UserRead:
        return UserRead.of(await users.change_role(viewer, user_id, patch.role, reason=patch.reason))

    @routes.post("/users/{user_id}:disable", summary="Disable a user; ends sessions, suspends tokens")
    async def disable_user(viewer: Writer, user_id: Id, body: ReasonBody) -> UserRead:
        changed = await users.set_user_disabled(viewer.id, user_id, disabled=True, reason=body.reason)
        return UserRead.of(changed)

    @routes.post("/users/{user_id}:enable", summary="Enable a user")
    async def enable_user(viewer: Writer, user_id: Id, body: ReasonBody) -> UserRead:
        changed = await users.set_user_disabled(viewer.id, user_id, disabled=False, reason=body.reason)
        return UserRead.of(changed)

    @routes.post("/users/{user_id}:reset_password", include_in_schema=False)
    @routes.post("/users/{user_id}:reset-password", summary="Reset a password; ends all sessions and tokens")
    async def reset_password(viewer: Writer, user_id: Id, body: ReasonBody) -> UserCreated:
        return UserCreated.of(await users.reset_password(viewer.id, user_id, reason=body.reason))


def _add_invitations(routes: APIRouter, users: UserService) -> None:
    @routes.get("/invitations", summary="List invitations, newest first")
    async def list_invitations(_viewer: Reader, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> InvitationPage:
        place = decode_cursor(cursor, [str])
        before = str(place[0]) if place else _AFTER_ALL_IDS
        found = await users.list_invitations(before=before, limit=limit + 1)
        more = encode_cursor([found[limit - 1].id]) if len(found) > limit else None
        return InvitationPage(items=[InvitationRead.of(row) for row in found[:limit]], next=more)

    @routes.post("/invitations", status_code=201, summary="Create an invitation; the code is shown once")
    async def create_invitation(viewer: Writer, body: InvitationCreate) -> InvitationCreated:
        made = await users.create_invitation(
            viewer,
            role=body.role,
            uses=body.uses,
            expires_in_days=body.expires_in_days,
            note=body.note,
            email=body.email,
        )
        return InvitationCreated.of(made)

    @routes.delete("/invitations/{invitation_id}", status_code=204, summary="Revoke an invitation")
    async def revoke_invitation(viewer: Writer, invitation_id: Id) -> None:
        await users.revoke_invitation(viewer, invitation_id)
