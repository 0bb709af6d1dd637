"""The permissions that the authority of a run has now.

Starting a chain grants no rights: a node may do what the user who started the run may do with the credential used. A
run started by a trigger has the rights of the user who saved the trigger, limited to those of the user who saved the
chain.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.authority import Authority, permissions_of
from adjudge.domain.errors import NodeRefused
from adjudge.domain.permissions import Permission, Role
from adjudge.store.accounts import users
from adjudge.store.engine.driver import Tx


@dataclass(frozen=True, slots=True)
class Rights:
    """The user who acts, and the current permissions."""

    user_id: str | None
    """None if the user is deleted or disabled, or the token was revoked: then nothing is allowed."""
    permissions: frozenset[Permission] = frozenset()
    is_admin: bool = False

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions

    def require(self, permission: Permission, what: str) -> None:
        """Refuse, without retry, what the user has no permission for."""
        if self.may(permission):
            return
        if self.user_id is None:
            raise NodeRefused(
                f"The run may not {what}: the user who started it is disabled, or the token of the start was revoked."
            )
        raise NodeRefused(f"The user who started the run may not {what}: the permission {permission} is missing.")

    def require_type(self, type_name: str, executor: object) -> None:
        """Refuse a node whose executor requires a permission that the user does not have."""
        for permission in getattr(executor, "permissions", ()):
            self.require(permission, f"run nodes of type {type_name}")

    def owns(self, owner_id: str) -> bool:
        """Whether the user may change a problem of ``owner_id``: the own ones, or all for admins."""
        return self.may(Permission.PROBLEM_WRITE) and (self.is_admin or self.user_id == owner_id)

    def sees_draft(self, owner_id: str) -> bool:
        """Whether the user may read drafts and secret tests of a problem of ``owner_id``."""
        return self.may(Permission.PROBLEM_READ_DRAFT) or self.owns(owner_id)


async def rights_of(tx: Tx, authority: Authority | None) -> Rights:
    """Read what an authority allows now."""
    if authority is None or not authority.grants:
        return Rights(None)
    granted_roles = await users.find_role(tx, authority.grants)
    permissions = permissions_of(authority, granted_roles)
    roles = {item.grant: item.role for item in granted_roles}
    if any(grant not in roles for grant in authority.grants):
        return Rights(None)
    is_admin = all(roles[grant] is Role.ADMIN for grant in authority.grants)
    return Rights(authority.grants[0].user_id, permissions, is_admin)
