"""Tokens, and what they let somebody do."""

from __future__ import annotations

import itertools
from typing import Annotated

import pytest

from adjudge.api.auth import require_permission
from adjudge.domain.errors import Forbidden
from adjudge.domain.permissions import Permission, Role, effective_permissions
from adjudge.services.viewer import AuthMethod, CredentialCache, Viewer
from adjudge.store.accounts import api_tokens
from tests.support.asgi_app import AsgiApp


@pytest.fixture
def _ops_route(api: AsgiApp) -> None:
    @api.app.get("/ops")
    async def ops(viewer: Annotated[Viewer, require_permission(Permission.OPS_CONTROL)]) -> str:
        return viewer.name


@pytest.mark.usefixtures("_ops_route")
async def test_route_distinguishes_unauthenticated_from_forbidden(api: AsgiApp) -> None:
    async with api.client() as visitor, api.as_role("contestant") as contestant, api.as_role("admin") as admin:
        assert (await visitor.get("/ops")).json()["code"] == "UNAUTHENTICATED"
        answer = await contestant.get("/ops")
        assert (answer.status_code, answer.json()["fields"]) == (403, {"permission": "ops:control"})
        assert (await admin.get("/ops")).status_code == 200


@pytest.mark.usefixtures("_ops_route")
@pytest.mark.parametrize("given", ["Bearer adj_wrong", "Bearer ", "Basic YTpi"])
async def test_a_wrong_credential_is_refused_rather_than_ignored(api: AsgiApp, given: str) -> None:
    async with api.client() as client:
        answer = await client.get("/ops", headers={"Authorization": given})
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize(
    "ending",
    [
        "UPDATE api_tokens SET revoked_at = created_at WHERE user_id = :id",
        "UPDATE api_tokens SET expires_at = created_at WHERE user_id = :id",
        "UPDATE users SET disabled_at = created_at WHERE id = :id",
    ],
)
async def test_a_token_that_has_ended_is_nobodys(api_on_both: AsgiApp, ending: str) -> None:
    store = api_on_both.store
    user_id, secret = await api_on_both.user("admin")
    assert await store.database.read(lambda tx: api_tokens.find_principal(tx, secret)) is not None
    await store.write(ending, id=user_id)
    assert await store.database.read(lambda tx: api_tokens.find_principal(tx, secret)) is None


async def test_user_is_forgotten_even_if_an_entry_expires_meanwhile(api: AsgiApp) -> None:
    times = itertools.chain([0.0] * 2, itertools.count(2.0, 2.0))
    credentials = CredentialCache(
        api.store.database, cache_sec=3, session_idle_us=60_000_000, clock=lambda: next(times)
    )
    user_id, secret = await api.user("service")
    assert await credentials.viewer_for_token(secret) is not None
    credentials.invalidate_user(user_id)  # finds the entry at 2 s; at the next look it has expired


@pytest.mark.parametrize(("role", "is_in_role"), [(Role.ADMIN, True), (Role.CONTESTANT, False)])
def test_error_says_whether_the_role_or_the_token_lacks_a_permission(role: Role, is_in_role: bool) -> None:
    permissions = effective_permissions(role, frozenset({"submission:create"}))
    viewer = Viewer("1", "ann", role, permissions, AuthMethod.TOKEN)
    with pytest.raises(Forbidden, match=r"^Permission required: ops:control\.") as caught:
        viewer.require(Permission.OPS_CONTROL)
    assert ("token with the scope ops:control" in str(caught.value)) is is_in_role


async def test_only_the_digest_of_a_token_is_stored(api: AsgiApp) -> None:
    _, secret = await api.user("service")
    stored = await api.store.rows("SELECT * FROM api_tokens")
    assert secret not in str(stored)


def test_scopes_never_give_more_than_the_role() -> None:
    scoped = effective_permissions(Role.CONTESTANT, frozenset({"submission:create", "ops:control"}))
    assert scoped == {Permission.SUBMISSION_CREATE}
    assert effective_permissions(Role.ADMIN, frozenset({"*"})) == frozenset(Permission)
