"""Invitations to contests: codes that admit one user, or a number of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.domain.contest import OWN_CLOCK, ContestRole, ParticipantKind
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import IdFactory, new_id
from adjudge.services.contest_access import ContestAccess
from adjudge.services.contest_registration import hash_code, new_code
from adjudge.services.participants import find_as_organiser, find_member
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.contests import commands, queries
from adjudge.store.contests.models import ContestInvitationRow
from adjudge.store.ops import audit_log


@dataclass(frozen=True, slots=True)
class CreatedContestInvitation:
    """A new invitation with its code, which is shown once."""

    id: str
    code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ContestInvitationService:
    """Operations of organisers on invitations."""

    database: Database
    access: ContestAccess
    new_id: IdFactory = new_id

    async def invite(
        self,
        viewer: Viewer,
        name: str,
        *,
        kind: ParticipantKind,
        user: str | None,
        note: str | None,
        max_uses: int,
        expires_at: int | None,
    ) -> CreatedContestInvitation:
        """Create an invitation, for one user or for any user who has the code."""
        invitation_id, code = self.new_id(), new_code()
        if kind in OWN_CLOCK:
            raise InvalidInput("kind: expected official, unofficial or test.", field="kind")

        async def operation(tx: Tx) -> None:
            view = await find_as_organiser(tx, viewer, name)
            user_id = None if user is None else await find_member(tx, user, "user")
            await commands.insert_invitation(
                tx,
                view.contest.id,
                invitation_id,
                hash_code(code),
                kind=kind,
                created_by=viewer.id,
                user_id=user_id,
                note=note,
                max_uses=max_uses,
                expires_at=expires_at,
            )
            details = {invitation_id: {"kind": str(kind), "max_uses": max_uses, "user_id": user_id}}
            await _audit(tx, viewer, "invite", details, note or "")

        await self.database.transact(operation)
        return CreatedContestInvitation(invitation_id, code)

    async def list_invitations(self, viewer: Viewer, name: str) -> list[ContestInvitationRow]:
        view = await self.access.find_as(viewer, name, ContestRole.ORGANISER)
        return await self.database.read(lambda tx: queries.invitations(tx, view.contest.id))

    async def revoke_invitation(self, viewer: Viewer, name: str, invitation_id: str) -> None:
        async def operation(tx: Tx) -> None:
            view = await find_as_organiser(tx, viewer, name)
            await commands.revoke_invitation(tx, view.contest.id, invitation_id)
            await _audit(tx, viewer, "revoke_invitation", {invitation_id: {}}, "")

        await self.database.transact(operation)


async def _audit(tx: Tx, viewer: Viewer, action: str, objects: Mapping[str, Mapping[str, Any]], reason: str) -> None:
    await audit_log.record(
        tx,
        actor=viewer.id,
        action=f"contest.{action}",
        object_kind="contest_invitation",
        objects=objects,
        reason=reason,
    )
