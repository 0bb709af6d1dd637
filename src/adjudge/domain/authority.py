"""On whose authority a chain run acts: user ids with the credentials they used, never names or copied permissions.

What that allows is looked up when a node acts, so a user who was disabled, a role that was taken away and a token that
was revoked or has expired count at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.domain.permissions import ALL_SCOPES, Permission, Role, effective_permissions


@dataclass(frozen=True, slots=True)
class Grant:
    """A user, and the API token they used; none where they were logged in by a session."""

    user_id: str
    token_id: str | None = None


@dataclass(frozen=True, slots=True)
class Authority:
    """Whose permissions a run has: those that every grant has. The first grant is whoever acts.

    A run that somebody started has one grant; one that a trigger started has that of whoever saved the trigger and that
    of whoever saved the chain, because either of them could make it do something else.
    """

    grants: tuple[Grant, ...]

    def document(self) -> list[dict[str, str | None]]:
        """As it is kept."""
        return [{"user_id": grant.user_id, "token_id": grant.token_id} for grant in self.grants]

    def and_of(self, other: Authority) -> Authority:
        """Only what both allow."""
        return Authority(tuple(dict.fromkeys((*self.grants, *other.grants))))


def authority_of(document: Sequence[Any] | None) -> Authority | None:
    """Read what ``Authority.document`` wrote."""
    if not document:
        return None
    return Authority(tuple(Grant(item["user_id"], item.get("token_id")) for item in document))


def as_json(authority: Authority | None) -> str | None:
    """An authority as it is written into a column."""
    return None if authority is None else json.dumps(authority.document())


def both(one: str | None, other: str | None) -> Authority | None:
    """What two columns allow together; nothing where one of them is empty."""
    first, second = (authority_of(json.loads(item)) if item else None for item in (one, other))
    return None if first is None or second is None else first.and_of(second)


@dataclass(frozen=True, slots=True)
class GrantedRole:
    """What is known now of a grant that still holds."""

    grant: Grant
    role: Role
    scopes: frozenset[str] = frozenset({ALL_SCOPES})


def permissions_of(authority: Authority | None, granted_roles: Sequence[GrantedRole]) -> frozenset[Permission]:
    """What an authority allows; nothing where one of its grants no longer holds."""
    known = {item.grant: item for item in granted_roles}
    if authority is None or not authority.grants or any(grant not in known for grant in authority.grants):
        return frozenset()
    first, *others = (effective_permissions(known[grant].role, known[grant].scopes) for grant in authority.grants)
    return first.intersection(*others)
