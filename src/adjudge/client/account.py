"""Operations: login, tokens and the own account."""

from __future__ import annotations

from adjudge.client.requests import fetch, get, path, post, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.account import AccountRead, TokenCreated


def login(
    retry: ClientRetryPolicy, name: str, password: str, *, token_name: str, expires_in_days: float | None = 90
) -> Program[TokenCreated]:
    """Create an API token with a username and a password."""
    body = {"name": name, "password": password, "token_name": token_name, "expires_in_days": expires_in_days}
    return (yield from fetch(TokenCreated, post(path("login", action="token"), body), retry))


def revoke_token(retry: ClientRetryPolicy, token_id: str) -> Program[None]:
    """Revoke one of the caller's own tokens."""
    yield from send(HttpRequest("DELETE", path("me", "tokens", token_id), is_repeatable=True), retry)


def me(retry: ClientRetryPolicy) -> Program[AccountRead]:
    """The account of the caller and its permissions."""
    return (yield from fetch(AccountRead, get(path("me")), retry))
