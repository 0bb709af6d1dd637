"""Submissions of a contest as its jury sees them: the list, and one with all its judge runs and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.contests import clock
from adjudge.contests.times import participant_clock
from adjudge.domain.contest import ContestRole, ParticipantKind
from adjudge.domain.errors import NotFound
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.judge.languages import Languages
from adjudge.services.contest_access import ContestView, find_view
from adjudge.services.participants import find_participant
from adjudge.services.submissions import SubmissionDetail, SubmissionService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.accounts import users
from adjudge.store.contests import jury_submissions, participants, queries
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.activity_models import ContestSubmissionRow
from adjudge.store.contests.jury_submissions import JurySubmissionFilter
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.dead_letters import JobAttemptRow
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging import rejudge
from adjudge.store.judging.models import JudgeRunRow, RejudgeBatchRow
from adjudge.store.ops import audit_log
from adjudge.store.ops.audit_log import AuditLogRow

JURY: Final = (ContestRole.ORGANISER, ContestRole.JUDGE)
READERS: Final = (*JURY, ContestRole.API_READER)
NEWEST: Final = 2**62
_LOGGED: Final = 100
_CHUNK: Final = 200
"""Submissions that are read at a time while late ones are searched."""
_WITHOUT_END: Final = frozenset({ParticipantKind.PRACTICE, ParticipantKind.TEST})


@dataclass(frozen=True, slots=True)
class JuryQuery:
    """A filter of the jury, by names: label of the problem, code of the participant, name of the language."""

    problem: str = ""
    participant: str = ""
    language: str = ""
    verdict: Verdict | None = None
    is_unverified: bool = False
    is_waiting: bool = False
    is_ignored: bool = False
    is_late: bool = False
    """Received outside the participant's time."""


@dataclass(frozen=True, slots=True)
class SubmissionForJury:
    """A submission with its participant and its time."""

    row: ContestSubmissionRow
    participant: ParticipantRow
    time_us: int | None
    """Participant time; None without a start."""
    is_late: bool
    """Received outside the participant's time; it counts only if it was made official."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that counts."""
        return self.row.override_verdict or self.row.verdict

    @property
    def is_waiting(self) -> bool:
        """Whether a verdict is to come."""
        return self.verdict is None and self.row.status != SubmissionStatus.CANCELED


@dataclass(frozen=True, slots=True)
class JudgeRunDetail:
    """A judge run with its result, its attempts, and the rejudge batch that it belongs to."""

    run: JudgeRunRow
    document: Mapping[str, Any] | None
    attempts: Sequence[JobAttemptRow]
    batch: RejudgeBatchRow | None
    is_counting: bool
    """Whether it determined the verdict of the judge."""


@dataclass(frozen=True, slots=True)
class JurySubmissionDetail:
    """Everything about a submission of a contest."""

    view: ContestView
    item: SubmissionForJury
    submission: SubmissionDetail
    runs: Sequence[JudgeRunDetail]
    previous: ContestSubmissionRow | None
    """The participant's submission to the same problem before this one."""
    log: Sequence[AuditLogRow]
    """The decisions about it, newest first."""
    names: Mapping[str, str]
    """Names of users by id."""


@dataclass(frozen=True, slots=True)
class JurySubmissionService:
    """Reads submissions of contests for the jury and for programs with the role ``api_reader``."""

    database: Database
    submissions: SubmissionService
    languages: Languages

    async def list_submissions(
        self, viewer: Viewer, name: str, asked: JuryQuery, *, before: int | None = None, limit: int
    ) -> tuple[ContestView, list[SubmissionForJury]]:
        """The submissions that match, newest first; ``before`` is the number of the last one of the previous page."""
        language = self.languages.get(asked.language).id if asked.language else None
        code = asked.participant

        async def look(tx: Tx) -> tuple[ContestView, list[SubmissionForJury]]:
            view = await find_view(tx, viewer, name)
            view.require(*READERS)
            wanted = JurySubmissionFilter(
                participant_id=(await find_participant(tx, view.contest.id, code)).id if code else None,
                problem_id=await find_problem_id(tx, view, asked.problem),
                language=language,
                verdict=asked.verdict,
                is_unverified=asked.is_unverified,
                is_waiting=asked.is_waiting,
                is_ignored=asked.is_ignored,
            )
            start = NEWEST if before is None else before
            if asked.is_late:
                return view, await _late(tx, view, wanted, before=start, limit=limit)
            rows = await jury_submissions.page(tx, view.contest.id, wanted, before=start, limit=limit)
            return view, await describe(tx, view, rows)

        return await self.database.read(look)

    async def get(self, viewer: Viewer, name: str, number: int) -> JurySubmissionDetail:
        """A submission by its number in the contest."""

        async def find(tx: Tx) -> ContestSubmissionRow:
            view = await find_view(tx, viewer, name)
            view.require(*READERS)
            return await contest_submissions.find_by_number(tx, view.contest.id, number)

        row = await self.database.read(find)
        detail = await self.submissions.get_detail(viewer, row.submission_id)

        async def look(tx: Tx) -> JurySubmissionDetail:
            view = await find_view(tx, viewer, name)
            (item,) = await describe(tx, view, [await contest_submissions.find(tx, row.submission_id)])
            log = await audit_log.page_by_object(tx, "submission", row.submission_id, limit=_LOGGED)
            runs = await _runs(tx, detail)
            actors = {row.user_id, row.verified_by, row.overridden_by}
            actors |= {run.batch.created_by for run in runs if run.batch is not None}
            return JurySubmissionDetail(
                view,
                item,
                detail,
                runs,
                await jury_submissions.find_previous(tx, row),
                log,
                await users.find_names(tx, {actor for actor in actors if actor}),
            )

        return await self.database.read(look)


async def describe(tx: Tx, view: ContestView, rows: Sequence[ContestSubmissionRow]) -> list[SubmissionForJury]:
    """The participants and times of submissions, in one lookup."""
    found = {item.id: item for item in await participants.find_many(tx, {row.participant_id for row in rows})}
    return [_described(view, row, found[row.participant_id]) for row in rows]


def _described(view: ContestView, row: ContestSubmissionRow, participant: ParticipantRow) -> SubmissionForJury:
    own, timeline = participant_clock(participant), view.times.timeline
    is_late = participant.kind not in _WITHOUT_END and not clock.is_counted(timeline, own, row.received_at)
    return SubmissionForJury(row, participant, clock.participant_time(timeline, own, row.received_at), is_late)


async def _late(
    tx: Tx, view: ContestView, wanted: JurySubmissionFilter, *, before: int, limit: int
) -> list[SubmissionForJury]:
    """Late submissions. Own times, pauses and windows decide, so they are found by reading those since the first end.

    Nobody ends before the duration or the window has passed since the start.
    """
    timeline = view.times.timeline
    if timeline.starts_at is None:
        return []
    length_us = timeline.duration_us if timeline.window_us is None else min(timeline.duration_us, timeline.window_us)
    since = replace(wanted, received_from=timeline.starts_at + length_us)
    found: list[SubmissionForJury] = []
    while len(found) < limit:
        rows = await jury_submissions.page(tx, view.contest.id, since, before=before, limit=_CHUNK)
        found += [item for item in await describe(tx, view, rows) if item.is_late]
        if len(rows) < _CHUNK:
            break
        before = rows[-1].number
    return found[:limit]


async def _runs(tx: Tx, detail: SubmissionDetail) -> list[JudgeRunDetail]:
    """All judge runs, newest first, with results and attempts in one lookup each."""
    ids = [run.id for run in detail.runs]
    documents = await submission_queries.find_results(tx, ids)
    attempts = await dead_letters.attempts_of_jobs(tx, ids)
    batches = await rejudge.find_many(tx, {run.rejudge_batch_id for run in detail.runs if run.rejudge_batch_id})
    return [
        JudgeRunDetail(
            run,
            documents.get(run.id),
            [item for item in attempts if item.job_id == run.id],
            batches.get(run.rejudge_batch_id or ""),
            run.id == detail.row.job_id,
        )
        for run in detail.runs
    ]


async def find_problem_id(tx: Tx, view: ContestView, label: str) -> str | None:
    """The problem with this label; None without one."""
    if not label:
        return None
    rows = await queries.problems(tx, view.contest.id)
    found = next((row.problem.problem_id for row in rows if row.problem.label == label), None)
    if found is None:
        raise NotFound("contest_problem", label)
    return found
