"""SQL of the scoreboard: locks, the submissions of cells, cells and rows.

``contests/scoreboard.py`` computes the cells and calls these functions in the transaction that changes a submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.domain.contest import ParticipantKind
from adjudge.domain.states import SubmissionStatus
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.models import ParticipantRow
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Dialect, Statement

JURY: Final = "jury"
PUBLIC: Final = "public"


@dataclass(frozen=True, slots=True)
class JudgedTarget:
    """The cell of a changed submission, and the result of the judge run that counts."""

    submission_id: str
    contest_id: str
    participant_id: str
    problem_id: str
    score: float | None
    document_score: float | None
    max_score: float | None
    groups: list[dict[str, Any]] | None


@dataclass(frozen=True, slots=True)
class CellSubmission:
    """A submission of a cell with everything that decides how it counts."""

    submission_id: str
    participant_id: str
    problem_id: str
    number: int
    received_at: int
    official: bool
    score_micro: int | None
    max_score_micro: int | None
    subtasks: dict[str, int] | None
    ignored_at: int | None
    verified_at: int | None
    override_verdict: Verdict | None
    override_score_micro: int | None
    status: SubmissionStatus
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class CellRow:
    """A stored cell in both views, as canonical JSON."""

    participant_id: str
    problem_id: str
    jury: str
    public: str
    jury_version: int
    public_version: int

    def text(self, view: str) -> str:
        """The cell in one view."""
        return self.jury if view == JURY else self.public

    def view_version(self, view: str) -> int:
        """The version of the last change in one view."""
        return self.jury_version if view == JURY else self.public_version


@dataclass(frozen=True, slots=True)
class ScoreboardRow:
    """The stored sort keys of a participant in one view."""

    participant_id: str
    view: str
    k1: int
    k2: int
    k3: int
    version: int


_ADVISORY = "hashtextextended(given_id, 15)"
LOCK_SHARED = Statement(
    "scoreboard.lock_shared",
    "Lock scoreboards of contests against changes of their timeline, shared.",
    f"SELECT CAST(pg_advisory_xact_lock_shared({_ADVISORY}) AS text) AS locked FROM {{given}}",
    input_columns={"given_id": "text"},
    only_dialect=Dialect.POSTGRES,
)
LOCK_EXCLUSIVE = Statement(
    "scoreboard.lock_exclusive",
    "Lock the scoreboard of a contest to change its timeline or rules.",
    f"SELECT CAST(pg_advisory_xact_lock({_ADVISORY}) AS text) AS locked FROM {{given}}",
    input_columns={"given_id": "text"},
    only_dialect=Dialect.POSTGRES,
)
_PARTICIPANTS = "SELECT {columns:participants} FROM {given} JOIN participants ON participants.id = given_id"
LOCK_PARTICIPANTS = Statement(
    "scoreboard.lock_participants",
    "Lock participants in id order before their cells are read.",
    _PARTICIPANTS + " ORDER BY participants.id FOR NO KEY UPDATE OF participants",
    sqlite_sql=_PARTICIPANTS,
    input_columns={"given_id": "text"},
    row=ParticipantRow,
)
READ_PARTICIPANTS = Statement(
    "scoreboard.read_participants",
    "Read participants without a lock, for a preview.",
    _PARTICIPANTS,
    input_columns={"given_id": "text"},
    row=ParticipantRow,
)
PARTICIPANT_IDS = Statement(
    "scoreboard.participant_ids",
    "List the participants of a contest that have a row on the scoreboard, by id.",
    """
    SELECT id FROM participants WHERE contest_id = :contest_id AND id > :after AND kind <> 'practice'
    ORDER BY id LIMIT :limit
    """,
)
RESULT_COLUMNS: Final = {
    "document_score": "CAST(jobs.result ->> 'score' AS double precision)",
    "max_score": "CAST(jobs.result ->> 'max_score' AS double precision)",
    "groups": "jobs.result -> 'groups'",
}
"""What scoring needs of the result document of a judge run."""
TARGETS = Statement(
    "scoreboard.targets",
    "Find the cells of submissions and the results of their judge runs.",
    """
    SELECT {columns:contest_submissions} FROM {given}
    JOIN contest_submissions ON contest_submissions.submission_id = given_id
    JOIN submissions ON submissions.id = given_id
    LEFT JOIN jobs ON jobs.id = submissions.judged_by_job_id
    """,
    input_columns={"given_id": "text"},
    row=JudgedTarget,
    columns=RESULT_COLUMNS | {"score": "submissions.score"},
)
SET_SCORES = Statement(
    "scoreboard.set_scores",
    "Store the scores of judge runs as micro-points; a verification ends with the verdict that was verified.",
    """
    UPDATE contest_submissions SET score_micro = given_score, max_score_micro = given_max_score,
        subtasks = given_subtasks,
        verified_at = CASE WHEN verified_verdict = submissions.verdict THEN verified_at END,
        verified_by = CASE WHEN verified_verdict = submissions.verdict THEN verified_by END,
        verified_verdict = CASE WHEN verified_verdict = submissions.verdict THEN verified_verdict END,
        version = contest_submissions.version + CASE WHEN verified_verdict <> submissions.verdict THEN 1 ELSE 0 END
    FROM {given} JOIN submissions ON submissions.id = given_id WHERE submission_id = given_id
    """,
    input_columns={
        "given_id": "text",
        "given_score": "bigint",
        "given_max_score": "bigint",
        "given_subtasks": "jsonb",
    },
)
_SUBMISSION_COLUMNS = {"status": "submissions.status", "verdict": "submissions.verdict"}
SUBMISSIONS_OF_CELLS = Statement(
    "scoreboard.submissions_of_cells",
    "List the submissions of cells in number order.",
    """
    SELECT {columns:contest_submissions} FROM {given}
    JOIN contest_submissions ON contest_submissions.participant_id = given_participant_id
      AND contest_submissions.problem_id = given_problem_id
    JOIN submissions ON submissions.id = contest_submissions.submission_id
    ORDER BY contest_submissions.number
    """,
    input_columns={"given_participant_id": "text", "given_problem_id": "text"},
    row=CellSubmission,
    columns=_SUBMISSION_COLUMNS | {"problem_id": "contest_submissions.problem_id"},
)
SUBMISSIONS_OF_PARTICIPANTS = Statement(
    "scoreboard.submissions_of_participants",
    "List all submissions of participants in number order.",
    """
    SELECT {columns:contest_submissions} FROM {given}
    JOIN contest_submissions ON participant_id = given_id
    JOIN submissions ON submissions.id = contest_submissions.submission_id
    ORDER BY contest_submissions.number
    """,
    input_columns={"given_id": "text"},
    row=CellSubmission,
    columns=_SUBMISSION_COLUMNS | {"problem_id": "contest_submissions.problem_id"},
)
CELLS = Statement(
    "scoreboard.cells",
    "Read the cells of participants.",
    "SELECT {columns} FROM {given} JOIN scoreboard_cells ON participant_id = given_id",
    input_columns={"given_id": "text"},
    row=CellRow,
)
ROWS = Statement(
    "scoreboard.rows",
    "Read the sort keys of participants.",
    "SELECT {columns} FROM {given} JOIN scoreboard_rows ON participant_id = given_id",
    input_columns={"given_id": "text"},
    row=ScoreboardRow,
)
UPSERT_CELLS = Statement(
    "scoreboard.upsert_cells",
    "Write cells.",
    """
    INSERT INTO scoreboard_cells (participant_id, problem_id, contest_id, jury, public, jury_version, public_version)
    SELECT given_participant_id, given_problem_id, :contest_id, given_jury, given_public, given_jury_version,
           given_public_version
    FROM {given} WHERE true
    ON CONFLICT (participant_id, problem_id) DO UPDATE SET jury = excluded.jury, public = excluded.public,
        jury_version = excluded.jury_version, public_version = excluded.public_version
    """,
    input_columns={
        "given_participant_id": "text",
        "given_problem_id": "text",
        "given_jury": "text",
        "given_public": "text",
        "given_jury_version": "bigint",
        "given_public_version": "bigint",
    },
)
UPSERT_ROWS = Statement(
    "scoreboard.upsert_rows",
    "Write sort keys.",
    """
    INSERT INTO scoreboard_rows (participant_id, view, contest_id, k1, k2, k3, version)
    SELECT given_participant_id, given_view, :contest_id, given_k_one, given_k_two, given_k_three, given_version
    FROM {given} WHERE true
    ON CONFLICT (participant_id, view) DO UPDATE SET k1 = excluded.k1, k2 = excluded.k2, k3 = excluded.k3,
        version = excluded.version
    """,
    input_columns={
        "given_participant_id": "text",
        "given_view": "text",
        "given_k_one": "bigint",
        "given_k_two": "bigint",
        "given_k_three": "bigint",
        "given_version": "bigint",
    },
)
DELETE_CELLS = Statement(
    "scoreboard.delete_cells",
    "Delete the cells of problems that a contest no longer has.",
    """
    DELETE FROM scoreboard_cells WHERE contest_id = :contest_id AND problem_id NOT IN (
        SELECT problem_id FROM contest_problems WHERE contest_id = :contest_id)
    """,
)


async def lock_shared(tx: Tx, contest_ids: Iterable[str]) -> None:
    """Keep timelines and rules unchanged until the commit. SQLite has a single writer and needs no lock."""
    if tx.dialect is Dialect.POSTGRES:
        await tx.fetch(LOCK_SHARED, [(item,) for item in sorted(contest_ids)])


async def lock_exclusive(tx: Tx, contest_id: str) -> None:
    """Wait for all transactions that change the scoreboard, and keep others out until the commit."""
    if tx.dialect is Dialect.POSTGRES:
        await tx.fetch(LOCK_EXCLUSIVE, [(contest_id,)])


async def lock_participants(tx: Tx, participant_ids: Iterable[str]) -> list[ParticipantRow]:
    """Lock participants in id order; those of practice have no row on the scoreboard and are left out."""
    rows = await tx.fetch(LOCK_PARTICIPANTS, [(item,) for item in sorted(participant_ids)])
    return [row for row in rows if row.kind is not ParticipantKind.PRACTICE]


async def read_participants(tx: Tx, participant_ids: Iterable[str]) -> list[ParticipantRow]:
    """Read participants without a lock."""
    return await tx.fetch(READ_PARTICIPANTS, [(item,) for item in sorted(participant_ids)])


async def participant_ids(tx: Tx, contest_id: str, *, after: str, limit: int) -> list[str]:
    """The participants of a contest that have a row, in pages."""
    rows = await tx.fetch(PARTICIPANT_IDS, contest_id=contest_id, after=after, limit=limit)
    return [row["id"] for row in rows]


async def targets(tx: Tx, submission_ids: Sequence[str]) -> list[JudgedTarget]:
    """The cells of submissions; submissions outside contests have none."""
    return await tx.fetch(TARGETS, [(item,) for item in submission_ids]) if submission_ids else []


async def set_scores(tx: Tx, rows: Sequence[tuple[str, int | None, int | None, str | None]]) -> None:
    """Store scores: submission, score, maximum, subtasks as JSON."""
    if rows:
        await tx.execute(SET_SCORES, rows)


async def submissions_of_cells(tx: Tx, cells: Iterable[tuple[str, str]]) -> list[CellSubmission]:
    """The submissions of cells (participant, problem), in number order."""
    return await tx.fetch(SUBMISSIONS_OF_CELLS, sorted(cells))


async def submissions_of_participants(tx: Tx, ids: Sequence[str]) -> list[CellSubmission]:
    """All submissions of participants, in number order."""
    return await tx.fetch(SUBMISSIONS_OF_PARTICIPANTS, [(item,) for item in ids]) if ids else []


async def cells(tx: Tx, ids: Sequence[str]) -> list[CellRow]:
    """The stored cells of participants."""
    return await tx.fetch(CELLS, [(item,) for item in ids])


async def rows(tx: Tx, ids: Sequence[str]) -> list[ScoreboardRow]:
    """The stored sort keys of participants."""
    return await tx.fetch(ROWS, [(item,) for item in ids])


async def write(tx: Tx, contest_id: str, new_cells: Sequence[CellRow], new_rows: Sequence[ScoreboardRow]) -> None:
    """Write changed cells and keys."""
    if new_cells:
        values = [
            (item.participant_id, item.problem_id, item.jury, item.public, item.jury_version, item.public_version)
            for item in new_cells
        ]
        await tx.execute(UPSERT_CELLS, sorted(values), contest_id=contest_id)
    if new_rows:
        keys = [(item.participant_id, item.view, item.k1, item.k2, item.k3, item.version) for item in new_rows]
        await tx.execute(UPSERT_ROWS, sorted(keys), contest_id=contest_id)


async def delete_cells_of_removed_problems(tx: Tx, contest_id: str) -> None:
    """Delete the cells of problems that are no longer in the contest."""
    await tx.execute(DELETE_CELLS, contest_id=contest_id)
