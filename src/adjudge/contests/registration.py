"""Adds participants to a contest, so that open scoreboards show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.domain.contest import ParticipantKind
from adjudge.store import Tx
from adjudge.store.contests import participants
from adjudge.store.contests.models import NewParticipant
from adjudge.store.contests.scoreboard_log import NewLogEntry, append_log
from adjudge.store.ops import audit_log

_FEW: Final = 100
"""Up to how many new participants are announced one by one; more make readers read the scoreboard again."""


async def add_participants(
    tx: Tx, contest_id: str, items: Sequence[NewParticipant], *, actor: str, reason: str = ""
) -> None:
    """Create participants of one contest, all or none, in a few statements whatever their number."""
    await participants.insert(tx, items)
    shown = [item for item in items if item.kind is not ParticipantKind.PRACTICE]
    if len(shown) > _FEW:
        await append_log(tx, [NewLogEntry(contest_id, "reset")])
    else:
        await append_log(tx, [NewLogEntry(contest_id, "participant", None, item.id) for item in shown])
    details = {item.id: {"code": item.code, "kind": str(item.kind)} for item in items}
    await audit_log.record(
        tx, actor=actor, action="participant.add", object_kind="participant", objects=details, reason=reason
    )
