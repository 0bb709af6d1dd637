"""The authority of a chain run: user ids and the credentials they used, never names or copied permissions.

Permissions are looked up when a node acts, so a disabled user, a changed role and a revoked or expired token take
effect immediately.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.domain.permissions import ALL_SCOPES, Permission, Role, effective_permissions


@dataclass(frozen=True, slots=True)
class Grant:
    """A user and the API token they used; no token if they used a session."""

    user_id: str
    token_id: str | None = None


@dataclass(frozen=True, slots=True)
class Authority:
    """The permissions of a chain run: the intersection of all grants. The first grant is the acting user.

    A run started by a user has one grant. A run started by a trigger has two, of the users who saved the trigger and
    the chain, because either of them can change what it does.
    """

    grants: tuple[Grant, ...]

    def document(self) -> list[dict[str, str | None]]:
        """The JSON form in which it is stored."""
        return [{"user_id": grant.user_id, "token_id": grant.token_id} for grant in self.grants]

    def intersect(self, other: Authority) -> Authority:
        return Authority(tuple(dict.fromkeys((*self.grants, *other.grants))))


def parse_authority(document: Sequence[Any] | None) -> Authority | None:
    if not document:
        return None
    return Authority(tuple(Grant(item["user_id"], item.get("token_id")) for item in document))


def authority_to_json(authority: Authority | None) -> str | None:
    """Encode an authority for its database column."""
    return None if authority is None else json.dumps(authority.document())


@dataclass(frozen=True, slots=True)
class GrantedRole:
    """The current role and scopes of a grant that is still valid."""

    grant: Grant
    role: Role
    scopes: frozenset[str] = frozenset({ALL_SCOPES})


def permissions_of(authority: Authority | None, granted_roles: Sequence[GrantedRole]) -> frozenset[Permission]:
    """The permissions of an authority; none if one of its grants is no longer valid."""
    known = {item.grant: item for item in granted_roles}
    if authority is None or not authority.grants or any(grant not in known for grant in authority.grants):
        return frozenset()
    first, *others = (effective_permissions(known[grant].role, known[grant].scopes) for grant in authority.grants)
    return first.intersection(*others)
