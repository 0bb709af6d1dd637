"""Dead letters: jobs that failed for good, kept until an operator replays or discards them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from adjudge.domain.errors import Conflict
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.ops import audit_log


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """The record of a job that failed for good."""

    id: str
    job_id: str
    kind: str
    attempt_id: int
    error_code: str
    error: str | None
    state: str
    replayed_by_job_id: str | None
    resolved_by: str | None
    note: str | None
    created_at: int
    resolved_at: int | None


@dataclass(frozen=True, slots=True)
class JobAttemptRow:
    """One attempt of a job, from its claim to its end."""

    job_id: str
    attempt_id: int
    worker: str
    started_at: int
    ended_at: int
    outcome: str
    reason: str | None
    error_code: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which dead letters are meant; an empty field matches all."""

    kind: str = ""
    error_code: str = ""
    problem_id: str = ""
    user_id: str = ""


_MATCHES = """
    (CAST(:kind AS text) = '' OR kind = :kind)
      AND (CAST(:error_code AS text) = '' OR error_code = :error_code)
      AND (CAST(:problem_id AS text) || CAST(:user_id AS text) = '' OR EXISTS (
        SELECT 1 FROM jobs JOIN submissions ON submissions.id = jobs.submission_id
        WHERE jobs.id = dead_letters.job_id
          AND (CAST(:problem_id AS text) = '' OR submissions.problem_id = :problem_id)
          AND (CAST(:user_id AS text) = '' OR submissions.user_id = :user_id)))
"""

PAGE = Statement(
    "dead_letters.page",
    "List dead letters in one state that match a filter, oldest first, keyset-paginated.",
    f"""
    SELECT {{columns}} FROM dead_letters WHERE state = :state AND {_MATCHES} AND id > :after ORDER BY id LIMIT :limit
    """,
    row=DeadLetterRow,
)

COUNT_MATCHING = Statement(
    "dead_letters.count_matching",
    "Count open dead letters that match a filter.",
    f"SELECT count(*) AS n FROM dead_letters WHERE state = 'open' AND {_MATCHES}",
)

FIND = Statement(
    "dead_letters.find",
    "Read one dead letter.",
    "SELECT {columns} FROM dead_letters WHERE id = :id",
    row=DeadLetterRow,
)

ATTEMPTS = Statement(
    "job_attempts.of_job",
    "List the finished attempts of a job.",
    "SELECT {columns} FROM job_attempts WHERE job_id = :job_id ORDER BY attempt_id",
    row=JobAttemptRow,
    columns={"worker": "lease_owner"},
)

ATTEMPTS_OF_JOBS = Statement(
    "job_attempts.of_jobs",
    "List the finished attempts of several jobs.",
    """
    SELECT {columns} FROM {given} JOIN job_attempts ON job_attempts.job_id = given_id
    ORDER BY job_id, attempt_id
    """,
    input_columns={"given_id": "text"},
    row=JobAttemptRow,
    columns={"worker": "lease_owner"},
)

COUNT_OPEN = Statement(
    "dead_letters.count_open",
    "Count open dead letters.",
    "SELECT count(*) AS n FROM dead_letters WHERE state = 'open'",
)

DELETE_RESOLVED = Statement(
    "dead_letters.delete_resolved",
    "Delete dead letters that were replayed or discarded before the retention period.",
    """
    DELETE FROM dead_letters WHERE id IN (
        SELECT id FROM dead_letters
        WHERE resolved_at IS NOT NULL AND resolved_at < {now} - CAST(:older_than_us AS bigint) LIMIT :limit)
    """,
)


_ANY: Final = DeadLetterFilter()


async def page(
    tx: Tx, *, state: str = "open", match: DeadLetterFilter = _ANY, after: str = "", limit: int = 50
) -> list[DeadLetterRow]:
    """List dead letters by id; ``after`` is the last id of the previous page."""
    return await tx.fetch(PAGE, state=state, after=after, limit=limit, **asdict(match))


async def count_matching(tx: Tx, match: DeadLetterFilter) -> int:
    """Count open dead letters that match a filter."""
    return int((await tx.fetch(COUNT_MATCHING, **asdict(match)))[0]["n"])


async def find(tx: Tx, letter_id: str) -> tuple[DeadLetterRow, list[JobAttemptRow]]:
    letter = or_not_found(await fetch_one(tx, FIND, id=letter_id), "dead_letter", letter_id)
    return letter, await attempts(tx, letter.job_id)


async def attempts(tx: Tx, job_id: str) -> list[JobAttemptRow]:
    """The finished attempts of a job."""
    return await tx.fetch(ATTEMPTS, job_id=job_id)


async def attempts_of_jobs(tx: Tx, job_ids: Sequence[str]) -> list[JobAttemptRow]:
    """The finished attempts of several jobs, in their order."""
    return await tx.fetch(ATTEMPTS_OF_JOBS, [(job_id,) for job_id in job_ids])


async def delete_resolved(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete dead letters that were resolved long ago; return their number."""
    return await tx.execute(DELETE_RESOLVED, older_than_us=older_than_ms * 1_000, limit=limit)


async def count_open(tx: Tx) -> int:
    """Count dead letters that were neither replayed nor discarded."""
    return int((await tx.fetch(COUNT_OPEN))[0]["n"])


async def replay(
    tx: Tx, jobs: JobCommands, letter_ids: Sequence[str], *, actor: str, reason: str
) -> dict[str, str | None]:
    """Replay the jobs of dead letters, all or none, and record the actor; return letter id → new job id."""
    replayed = await jobs.replay(tx, letter_ids, actor=actor, note=reason)
    await _refuse_missing(tx, letter_ids, list(replayed))
    details = {letter_id: {"job_id": job_id} for letter_id, job_id in replayed.items()}
    await audit_log.record(tx, actor=actor, action="replay", object_kind="dead_letter", objects=details, reason=reason)
    return replayed


async def discard(tx: Tx, jobs: JobCommands, letter_ids: Sequence[str], *, actor: str, reason: str) -> None:
    """Discard dead letters, all or none, and record the actor. Their jobs and histories are kept."""
    discarded = await jobs.discard(tx, letter_ids, actor=actor, note=reason)
    await _refuse_missing(tx, letter_ids, discarded)
    await audit_log.record(
        tx, actor=actor, action="discard", object_kind="dead_letter", objects=discarded, reason=reason
    )


async def _refuse_missing(tx: Tx, wanted: Sequence[str], done: Sequence[str]) -> None:
    for letter_id in wanted:
        if letter_id not in done:
            letter, _ = await find(tx, letter_id)
            raise Conflict(f"Dead letter {letter_id!r} is {letter.state} already.", id=letter_id, state=letter.state)
