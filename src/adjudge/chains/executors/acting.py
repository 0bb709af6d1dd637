"""On whose behalf a node acts, and with what rights.

Starting a chain lends nobody rights: a node does what whoever started the run may do themselves. What a trigger starts
has the rights of the house, because only those who define chains make triggers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adjudge.chains.executor import NodeContext
from adjudge.chains.executors.refusal import NodeRefused
from adjudge.domain.access import ROLE_PERMISSIONS, Permission, Role
from adjudge.domain.errors import InvalidInput
from adjudge.store import Database, node_work

_TRIGGER: Final = "trigger:"
"""What the actor of a run begins with that a trigger started: names of users have no colon."""


@dataclass(frozen=True, slots=True)
class Starter:
    """Whoever the run was started for; without a user, the house itself."""

    user_id: str | None
    role: Role | None

    def may(self, permission: Permission) -> bool:
        """Whether the point is theirs."""
        return self.user_id is None or (self.role is not None and permission in ROLE_PERMISSIONS[self.role])

    def require(self, permission: Permission, what: str) -> None:
        """Refuse, for good, what they may not do themselves."""
        if not self.may(permission):
            raise NodeRefused(f"Whoever started the run may not {what}: that needs the permission {permission}.")

    def owns(self, owner_id: str) -> bool:
        """Whether something of ``owner_id``'s is theirs to change."""
        return self.user_id in (None, owner_id) or self.role is Role.ADMIN


async def starter_of(database: Database, context: NodeContext) -> Starter:
    """Find who started the run; somebody who is gone or shut out may do nothing."""
    if context.actor.startswith(_TRIGGER):
        return Starter(None, None)
    found = await database.read(lambda tx: node_work.standing(tx, context.actor))
    return Starter("", None) if found is None else Starter(found[0], Role(found[1]))


async def acting_user(database: Database, context: NodeContext) -> str:
    """The id of the user that the node's ``user`` names, else of whoever the run was started for."""
    who = str(context.cfg.get("user") or context.actor)
    found = await database.read(lambda tx: node_work.user_id(tx, who))
    if found is None:
        raise InvalidInput(
            f"user: {who[:64]!r} is no user; name one in the node's cfg.user, or start the run as one.", field="user"
        )
    starter = await starter_of(database, context)
    if starter.user_id != found:
        starter.require(Permission.CHAIN_WRITE, f"act for {who[:64]!r}")
    return found
