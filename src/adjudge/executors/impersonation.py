"""The user that a node acts for: the rights of the run (``chains.rights``), and the user that the node's cfg names."""

from __future__ import annotations

from adjudge.chains.executor import NodeContext
from adjudge.chains.rights import Rights, rights_of
from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import Permission
from adjudge.store import Database
from adjudge.store.accounts import users


async def find_chain_run_principal(database: Database, context: NodeContext) -> Rights:
    """The current rights of the run."""
    return await database.read(lambda tx: rights_of(tx, context.authority))


async def resolve_user_id(database: Database, context: NodeContext) -> str:
    """The id of the user in the node's ``user``, else of the user that the run acts for."""
    starter, who = await find_chain_run_principal(database, context), context.cfg.get("user")
    if who is None:
        if starter.user_id is None:
            starter.require(Permission.RUN_CONTROL, "act for anybody")
            raise InvalidInput("user: the run acts for nobody; start it as a user.", field="user")
        return starter.user_id
    found = await database.read(lambda tx: users.find_id(tx, str(who)))
    if found is None:
        raise InvalidInput(f"user: {str(who)[:64]!r} is no user; name one in the node's cfg.user.", field="user")
    if starter.user_id != found:
        starter.require(Permission.CHAIN_WRITE, f"act for {str(who)[:64]!r}")
    return found
