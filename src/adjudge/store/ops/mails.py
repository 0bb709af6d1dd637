"""Mails: rows that a job sends. The text is deleted when a mail is sent, because it may hold a one-time link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.states import JobStatus
from adjudge.store.engine.driver import Tx, fetch_one
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import FinishedJob, Job, NewJob

JOB_KIND_MAIL: Final = "mail"
"""The kind of job that sends a mail."""
_ATTEMPTS: Final = 6
_PRIORITY: Final = 3
_TIMEOUT_MS: Final = 60_000


class NewMail(NamedTuple):
    """A mail to be sent."""

    recipient: str
    subject: str
    body: str


@dataclass(frozen=True, slots=True)
class MailRow:
    """A mail that is to be sent."""

    id: str
    recipient: str
    subject: str
    body: str | None
    created_at: int


INSERT = Statement(
    "mails.insert",
    "Insert mails.",
    """
    INSERT INTO mails (id, recipient, subject, body, created_at)
    SELECT given_id, given_recipient, given_subject, given_body, {now} FROM {given}
    """,
    input_columns={"given_id": "text", "given_recipient": "text", "given_subject": "text", "given_body": "text"},
)
FIND = Statement(
    "mails.find", "Read a mail that is to be sent.", "SELECT {columns} FROM mails WHERE id = :id", row=MailRow
)
FINISH = Statement(
    "mails.finish",
    "Store the results of mails and delete their texts.",
    """
    UPDATE mails SET state = given_state, error = given_error, body = NULL, finished_at = {now}
    FROM {given} WHERE id = given_id
    """,
    input_columns={"given_id": "text", "given_state": "text", "given_error": "text"},
)
DELETE_OLD = Statement(
    "mails.delete_old",
    "Delete mails after their retention time.",
    """
    DELETE FROM mails WHERE id IN (
        SELECT id FROM mails WHERE created_at < {now} - CAST(:older_than_us AS bigint) LIMIT :limit)
    """,
)


async def enqueue(tx: Tx, mails: Sequence[NewMail], *, new_id: IdFactory = new_id) -> None:
    """Create mails with the jobs that send them, in the transaction of their cause."""
    if not mails:
        return
    rows = [(new_id(), *mail) for mail in mails]
    await tx.execute(INSERT, rows)
    jobs = [
        NewJob(
            new_id(),
            JOB_KIND_MAIL,
            max_attempts=_ATTEMPTS,
            priority=_PRIORITY,
            timeout_ms=_TIMEOUT_MS,
            payload={"mail_id": row[0]},
        )
        for row in rows
    ]
    await JobCommands({}).enqueue(tx, jobs)  # creating jobs calls no listener


async def find(tx: Tx, mail_id: str) -> MailRow | None:
    return await fetch_one(tx, FIND, id=mail_id)


async def delete_old(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete mails after their retention time; return how many."""
    return await tx.execute(DELETE_OLD, older_than_us=older_than_ms * 1_000, limit=limit)


class MailListener:
    """Writes whether a mail was sent."""

    async def on_started(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A mail that is being sent is still pending."""

    async def on_released(self, tx: Tx, jobs: Sequence[Job]) -> None:
        """A mail that is tried again is still pending."""

    async def on_finished(self, tx: Tx, ended: Sequence[FinishedJob]) -> None:
        """Store the result."""
        rows = [
            (
                item.job.payload["mail_id"],
                "sent" if item.job.status is JobStatus.SUCCEEDED else "failed",
                None if item.job.status is JobStatus.SUCCEEDED else item.job.error_code,
            )
            for item in ended
        ]
        await tx.execute(FINISH, sorted(rows))
