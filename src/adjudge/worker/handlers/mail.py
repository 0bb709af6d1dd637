"""Handler of mails: sends one by SMTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.domain.states import JobStatus
from adjudge.services.smtp import SmtpClient
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.ops import mails
from adjudge.worker.handler import HandlerResult


class MailHandler:
    """Sends mails. On a worker whose settings have no mail server, the attempt fails."""

    def __init__(self, database: Database, smtp: SmtpClient | None) -> None:
        self._database = database
        self._smtp = smtp

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        del job_payload
        return ()

    async def run(self, job: Job) -> HandlerResult:
        """Send the mail; the last failure ends the job without a dead letter, because the mail server is at fault."""
        mail = await self._database.read(lambda tx: mails.find(tx, job.payload["mail_id"]))
        if mail is None or mail.body is None:
            return HandlerResult(JobStatus.SUCCEEDED, {"skipped": True})
        try:
            if self._smtp is None:
                raise Unavailable("mail.smtp_url: not set for this worker.")
            await self._smtp.send(message_id=mail.id, recipient=mail.recipient, subject=mail.subject, body=mail.body)
        except Unavailable as error:
            if job.attempt_id < job.max_attempts:
                raise
            return _given_up(error.code, error.message)
        except InvalidInput as error:
            return _given_up(error.code, error.message)
        return HandlerResult(JobStatus.SUCCEEDED, {})


def _given_up(code: str, message: str) -> HandlerResult:
    return HandlerResult(JobStatus.FAILED, {"error": message}, None, code, message, dead_letter=False)
