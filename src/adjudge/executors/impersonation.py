"""The user that a node acts for: the rights of the run (``chains.rights``), and the user that the node's cfg names."""

from __future__ import annotations

from adjudge.chains.executor import NodeContext
from adjudge.chains.rights import Rights, rights_of
from adjudge.domain.contest import ContestRole
from adjudge.domain.errors import InvalidInput, NodeRefused
from adjudge.domain.permissions import Permission
from adjudge.services.contest_access import ContestAccess, ContestView
from adjudge.services.viewer import AuthMethod, Viewer
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


async def find_contest_as(database: Database, context: NodeContext, name: str, *roles: ContestRole) -> ContestView:
    """The contest as the run sees it, if everybody in the run's authority has one of the roles in it."""
    starter = await find_chain_run_principal(database, context)
    access = ContestAccess(database)
    if starter.user_id is None or context.authority is None:
        starter.require(Permission.CONTEST_JOIN, "act in a contest")
        raise NodeRefused("The run acts for nobody; start it as a user.")
    user_ids = dict.fromkeys(grant.user_id for grant in context.authority.grants)
    viewers = [Viewer(item, context.actor, None, starter.permissions, AuthMethod.TOKEN) for item in user_ids]
    acting, *_ = [await access.find_as(viewer, name, *roles) for viewer in viewers]
    return acting
