"""Imports of packages as revisions, and repeated verifications of revisions.

Each import has a job. The result of the job (findings, the new revision, the verification table) is written in the
transaction that finishes the job, so an import never refers to a revision that does not exist, and an attempt that
lost its lease writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from adjudge.domain.errors import Conflict
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.notify import CHANNEL_JUDGING
from adjudge.store.engine.rows import column_values
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs import retention
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob
from adjudge.store.ops import audit_log
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems.models import NewProblem, NewRevision

JOB_KIND_IMPORT: Final = "import"


@dataclass(frozen=True, slots=True)
class NewImport:
    """An import to be created: an archive to import, or a revision to verify."""

    id: str
    created_by: str
    purpose: str = JOB_KIND_IMPORT
    archive_digest: str | None = None
    file_name: str = ""
    requested: Mapping[str, Any] = field(default_factory=dict)
    problem_id: str | None = None
    revision_id: str | None = None


@dataclass(frozen=True, slots=True)
class ImportRow:
    """An import or verification."""

    id: str
    purpose: Literal["import", "verify"]
    created_by: str
    job_id: str
    archive_digest: str | None
    file_name: str
    requested: dict[str, Any]
    state: Literal["pending", "running", "succeeded", "failed", "canceled"]
    problem_id: str | None
    slug: str | None
    revision_id: str | None
    revision: int | None
    findings: list[dict[str, Any]]
    jury: dict[str, Any] | None
    error: str | None
    created_at: int
    updated_at: int
    finished_at: int | None


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of an import job. ``error`` is the reason of a failure; the findings give the details."""

    findings: Sequence[Mapping[str, Any]] = ()
    jury: Mapping[str, Any] | None = None
    error: str | None = None
    problem: NewProblem | None = None
    """The problem of the revision; created if its slug does not exist."""
    revision: NewRevision | None = None
    may_edit_others_problems: bool = False
    publish_after_import: bool = False


@dataclass(frozen=True, slots=True)
class AddedRevision:
    """An imported revision and its problem."""

    problem_id: str
    revision_id: str
    number: int


INSERT = Statement(
    "problem_imports.insert",
    "Insert an import or verification request.",
    """
    INSERT INTO problem_imports (id, purpose, created_by, job_id, archive_digest, file_name, requested, problem_id,
                                 revision_id, created_at, updated_at)
    VALUES (:id, :purpose, :created_by, :job_id, :archive_digest, :file_name, :requested, :problem_id, :revision_id,
            {now}, {now})
    """,
)

START = Statement(
    "problem_imports.start",
    "Set imports to running.",
    """
    UPDATE problem_imports SET state = 'running', updated_at = {now}
    FROM {given} WHERE id = given_id AND state = 'pending'
    """,
    input_columns={"given_id": "text"},
)

FINISH = Statement(
    "problem_imports.finish",
    "Store the result of a running import.",
    """
    UPDATE problem_imports SET state = :state, findings = :findings, jury = :jury, error = :error,
        problem_id = COALESCE(CAST(:problem_id AS text), problem_id),
        revision_id = COALESCE(CAST(:revision_id AS text), revision_id), updated_at = {now}, finished_at = {now}
    WHERE id = :id AND finished_at IS NULL
    """,
)

LOCK_OPEN = Statement(
    "problem_imports.lock_open",
    "Lock an unfinished import.",
    "SELECT id FROM problem_imports WHERE id = :id AND finished_at IS NULL FOR NO KEY UPDATE",
)

REOPEN = Statement(
    "problem_imports.reopen",
    "Reopen a failed import with a new job.",
    """
    UPDATE problem_imports SET state = 'pending', job_id = :job_id, error = NULL, findings = NULL, finished_at = NULL,
        updated_at = {now}
    WHERE id = :id AND state = 'failed'
    """,
)

INSERT_PROBLEM = Statement(
    "problem_imports.insert_problem",
    "Insert the problem of an import unless its slug exists.",
    """
    INSERT INTO problems (id, slug, title, owner_id, tags, difficulty, created_at, updated_at)
    VALUES (:id, :slug, :title, :owner_id, :tags, :difficulty, {now}, {now})
    ON CONFLICT (slug) DO NOTHING
    """,
)

LOCK_PROBLEM = Statement(
    "problem_imports.lock_problem",
    "Lock the problem that a revision is added to, so that revision numbers are consecutive.",
    "SELECT id, owner_id, version FROM problems WHERE slug = :slug FOR UPDATE",
)

_IMPORT: Final = """
    SELECT {columns:problem_imports} FROM problem_imports
    LEFT JOIN problems ON problems.id = problem_imports.problem_id
    LEFT JOIN problem_revisions ON problem_revisions.id = revision_id
    """

_COLUMNS: Final = {
    "slug": "problems.slug",
    "revision": "problem_revisions.number",
    "findings": "COALESCE(problem_imports.findings, '[]')",
}

SELECT = Statement(
    "problem_imports.select",
    "Read one import.",
    _IMPORT + "WHERE problem_imports.id = :id",
    row=ImportRow,
    columns=_COLUMNS,
)

SELECT_PAGE = Statement(
    "problem_imports.select_page",
    "List a user's imports, newest first.",
    _IMPORT
    + """
    WHERE problem_imports.created_by = :created_by AND problem_imports.id < :before_id
    ORDER BY problem_imports.id DESC LIMIT :limit
    """,
    row=ImportRow,
    columns=_COLUMNS,
)

SELECT_VERIFICATION = Statement(
    "problem_imports.select_verification",
    "Find the last verification result of a revision.",
    """
    SELECT jury FROM problem_imports
    WHERE revision_id = :revision_id AND jury IS NOT NULL
    ORDER BY id DESC LIMIT 1
    """,
)


SELECT_OLD = Statement(
    "problem_imports.select_old",
    "Hold finished imports past their retention that are not the last of their revision, nor its last verification.",
    """
    SELECT id, job_id FROM problem_imports
    WHERE finished_at < {now} - CAST(:older_than_us AS bigint)
      AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.origin_job_id = problem_imports.job_id)
      AND NOT EXISTS (
        SELECT 1 FROM dead_letters WHERE dead_letters.job_id = problem_imports.job_id AND dead_letters.state = 'open')
      AND (revision_id IS NULL OR (
        EXISTS (
            SELECT 1 FROM problem_imports AS later
            WHERE later.revision_id = problem_imports.revision_id AND later.id > problem_imports.id)
        AND (jury IS NULL OR EXISTS (
            SELECT 1 FROM problem_imports AS later
            WHERE later.revision_id = problem_imports.revision_id AND later.id > problem_imports.id
              AND later.jury IS NOT NULL))))
    ORDER BY id LIMIT :limit
    FOR UPDATE OF problem_imports SKIP LOCKED
    """,
)

DELETE_MANY = Statement(
    "problem_imports.delete_many",
    "Delete imports.",
    "DELETE FROM problem_imports WHERE id IN (SELECT given_id FROM {given})",
    input_columns={"given_id": "text"},
)


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 200) -> int:
    """Delete finished imports past their retention, with their jobs; return their number."""
    rows = await tx.fetch(SELECT_OLD, older_than_us=older_than_ms * 1_000, limit=limit)
    if not rows:
        return 0
    await tx.execute(DELETE_MANY, [(row["id"],) for row in rows])
    await retention.delete_ended(tx, sorted(row["job_id"] for row in rows))
    return len(rows)


async def insert(tx: Tx, jobs: JobCommands, new: NewImport, *, timeout_ms: int, new_id: IdFactory = new_id) -> str:
    """Create an import and its job; return the job's id."""
    job = NewJob(
        new_id(), JOB_KIND_IMPORT, dedupe_key=new.id, payload={"import_id": new.id}, actor=new.created_by, priority=1
    )
    (job_id,) = await jobs.enqueue(tx, [job._replace(timeout_ms=timeout_ms)])
    await tx.execute(INSERT, job_id=job_id, **column_values(new))
    return job_id


async def find(tx: Tx, import_id: str) -> ImportRow:
    return or_not_found(await fetch_one(tx, SELECT, id=import_id), "import", import_id)


async def page(tx: Tx, *, created_by: str, before_id: str | None, limit: int) -> list[ImportRow]:
    """List a user's imports, newest first; ``before_id`` is the last id of the previous page."""
    return await tx.fetch(SELECT_PAGE, created_by=created_by, before_id=before_id or "~", limit=limit)


async def find_verification(tx: Tx, revision_id: str) -> dict[str, Any] | None:
    """The last verification result of a revision."""
    row = await fetch_one(tx, SELECT_VERIFICATION, revision_id=revision_id)
    return json.loads(row["jury"]) if row else None


class ImportListener:
    """Updates imports with their jobs."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        await tx.execute(START, sorted((str(job.payload["import_id"]),) for job in jobs))
        tx.notify(CHANNEL_JUDGING)

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """An import stays running while its job waits for a retry."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Store the results, and add the imported revisions."""
        for item in ended:
            await self._end(tx, str(item.job.payload["import_id"]), item)
        tx.notify(CHANNEL_JUDGING)

    async def replay(self, tx: Tx, jobs: Sequence[NewJob], *, reason: str) -> dict[str, str | None]:  # noqa: ARG002
        """Reopen the imports of dead letters with new jobs."""
        for job in sorted(jobs, key=lambda job: str(job.payload["import_id"])):
            import_id = str(job.payload["import_id"])
            if not await tx.execute(REOPEN, id=import_id, job_id=job.id):
                raise Conflict(f"Import {import_id!r} has moved on; discard its dead letter.", id=import_id)
        tx.notify(CHANNEL_JUDGING)
        await JobCommands({}).enqueue(tx, jobs)  # creating jobs calls no listener
        return {job.id: job.id for job in jobs}

    async def _end(self, tx: Tx, import_id: str, item: FinishedJob) -> None:
        if await fetch_one(tx, LOCK_OPEN, id=import_id) is None:  # already finished
            return
        found = item.typed_result if isinstance(item.typed_result, ImportResult) else ImportResult(error=_why(item.job))
        added = None
        if found.error is None and found.problem is not None and found.revision is not None:
            added = await add_imported_revision(tx, found.problem, found.revision, found)
            if added is None:
                found = replace(found, error=f"slug: {found.problem.slug!r} belongs to another user.")
        state = "succeeded" if found.error is None else "failed"
        await tx.execute(
            FINISH,
            id=import_id,
            state="canceled" if item.job.status is JobStatus.CANCELED else state,
            findings=json.dumps(list(found.findings)),
            jury=json.dumps(found.jury) if found.jury is not None else None,
            error=found.error,
            problem_id=added.problem_id if added else None,
            revision_id=added.revision_id if added else None,
        )


async def add_imported_revision(
    tx: Tx, problem: NewProblem, revision: NewRevision, found: ImportResult
) -> AddedRevision | None:
    """Add a revision to the problem with its slug, creating the problem if needed; None if another user owns it."""
    created = await tx.execute(INSERT_PROBLEM, **column_values(problem))
    row = or_not_found(await fetch_one(tx, LOCK_PROBLEM, slug=problem.slug), "problem", problem.slug)
    if created:
        await problem_commands.index_for_search(tx, problem)
    elif row["owner_id"] != problem.owner_id and not found.may_edit_others_problems:
        return None
    number = await problem_commands.add_revision(tx, replace(revision, problem_id=row["id"]))
    if found.publish_after_import:
        await problem_commands.publish(tx, problem_id=row["id"], revision_id=revision.id, version=row["version"])
        await audit_log.record(
            tx,
            actor=revision.created_by,
            action="problem.publish",
            object_kind="problem",
            objects={row["id"]: {"revision": number}},
            reason="imported to be published",
        )
        event = {"problem_id": row["id"], "slug": problem.slug, "revision": number}
        await chain_triggers.fire_event(tx, chain_triggers.PROBLEM_PUBLISHED, event)
    return AddedRevision(row["id"], revision.id, number)


def _why(job: Job) -> str | None:
    if job.status is JobStatus.CANCELED:
        return job.reason or "Canceled."
    return None if job.status is JobStatus.SUCCEEDED else f"The job failed ({job.error_code})."
