"""Decisions of the jury about participants and submissions: each changes the scoreboard in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.contests import lifecycle, scoreboard
from adjudge.store import Tx
from adjudge.store.contests import event_log, participants
from adjudge.store.contests import scoreboard as scoreboard_store
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.event_log import NewContestEvent
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.contests.scoreboard import JURY
from adjudge.store.contests.scoreboard_log import NewLogEntry, append_log
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.ops import audit_log


async def update_participant(tx: Tx, participant: ParticipantRow, *, actor: str, reason: str) -> None:
    """Write a participant that has the version that was read: name, kind, disqualification, times, added penalty."""
    await scoreboard_store.lock_shared(tx, [participant.contest_id])
    await participants.update(tx, participant)
    await scoreboard.refold_participants(tx, participant.contest_id, [participant.id])
    details = {
        "kind": str(participant.kind),
        "disqualified_at": participant.disqualified_at,
        "hidden": participant.hidden,
        "delay_us": participant.delay_us,
        "extra_us": participant.extra_us,
        "penalty_adjust_sec": participant.penalty_adjust_sec,
    }
    await audit_log.record(
        tx,
        actor=actor,
        action="participant.update",
        object_kind="participant",
        objects={participant.id: details},
        reason=reason,
    )


async def set_clocks(
    tx: Tx, contest_id: str, rows: Sequence[tuple[str, int | None, int | None]], *, actor: str, reason: str
) -> None:
    """Set delay and extra time of participants: participant, delay, extra; None keeps a value."""
    await scoreboard_store.lock_shared(tx, [contest_id])
    await scoreboard_store.lock_participants(tx, [row[0] for row in rows])
    await participants.set_clocks(tx, contest_id, rows)
    await scoreboard.refold_participants(tx, contest_id, [row[0] for row in rows])
    await audit_log.record(
        tx,
        actor=actor,
        action="participant.set_clocks",
        object_kind="participant",
        objects={row[0]: {"delay_us": row[1], "extra_us": row[2]} for row in rows},
        reason=reason,
    )


async def decide(tx: Tx, submission_id: str, decision: JuryDecision, *, version: int, actor: str, reason: str) -> None:
    """Ignore, verify or override a submission, or make a late one official, if it has this version."""
    row = await contest_submissions.find(tx, submission_id)
    await lifecycle.lock_changeable(tx, row.contest_id)
    await contest_submissions.decide(tx, submission_id, version, decision)
    await scoreboard.refold_cells(tx, {row.contest_id: {(row.participant_id, row.problem_id)}})
    is_verified = decision.verified_by is not None and row.verified_at is None
    if is_verified or decision.override_verdict is not row.override_verdict:
        await event_log.append(tx, [NewContestEvent(row.contest_id, submission_id=submission_id)])
    await append_log(tx, [NewLogEntry(row.contest_id, "submission", JURY, row.participant_id, payload=submission_id)])
    verdict = decision.override_verdict
    details = {
        "official": decision.official,
        "ignored": decision.is_ignored,
        "verified_by": decision.verified_by,
        "override_verdict": None if verdict is None else str(verdict),
        "override_score_micro": decision.override_score_micro,
    }
    await audit_log.record(
        tx,
        actor=actor,
        action="contest_submission.decide",
        object_kind="submission",
        objects={submission_id: details},
        reason=reason,
    )
