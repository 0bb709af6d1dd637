"""On whose behalf a node acts."""

from __future__ import annotations

from adjudge.chains.executor import NodeContext
from adjudge.domain.errors import InvalidInput
from adjudge.store import Database, node_work


async def acting_user(database: Database, context: NodeContext) -> str:
    """The id of the user that the node's ``user`` names, else of whoever the run was started for."""
    who = str(context.cfg.get("user") or context.actor)
    found = await database.read(lambda tx: node_work.user_id(tx, who))
    if found is None:
        raise InvalidInput(
            f"user: {who[:64]!r} is no user; name one in the node's cfg.user, or start the run as one.", field="user"
        )
    return found
