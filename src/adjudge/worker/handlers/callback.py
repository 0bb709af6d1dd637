"""Handler of callbacks: sends the result of an execution to Judge0's ``callback_url``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from adjudge import __version__
from adjudge.domain.errors import InvalidInput
from adjudge.domain.states import JobStatus
from adjudge.judge.languages import Languages
from adjudge.services.http_client import GuardedTransport, PrivateHostAllowList, Resolve, resolve_host
from adjudge.services.judge0 import CALLBACK_TIMEOUT_SEC
from adjudge.services.judge0_response import DEFAULT_FIELDS, render
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.judging import executions
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.delivery import DeliveryFailed, deliver

_HEADERS: Final = {"Content-Type": "application/json", "User-Agent": f"adjudge/{__version__}"}


class CallbackHandler:
    """Sends the result of an execution, once per attempt."""

    def __init__(
        self,
        database: Database,
        languages: Languages,
        allowed: PrivateHostAllowList,
        *,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._database = database
        self._languages = languages
        self._transport = GuardedTransport(allowed, resolve)

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        del job_payload
        return ()

    async def run(self, job: Job) -> HandlerResult:
        """Send the result; the last failure ends the job without a dead letter, because the receiver is at fault."""
        execution_id = job.payload["execution_id"]
        found = await self._database.read(lambda tx: executions.find_finished(tx, execution_id))
        if found is None or found.callback_url is None:
            return HandlerResult(JobStatus.SUCCEEDED, {"skipped": True})
        document = render(found, self._languages.get(found.language).name, DEFAULT_FIELDS, is_base64=True)
        try:
            status = await deliver(
                self._transport,
                "PUT",
                found.callback_url,
                headers=_HEADERS,
                body=json.dumps(document).encode(),
                timeout_sec=CALLBACK_TIMEOUT_SEC,
            )
        except DeliveryFailed as error:
            if job.attempt_id < job.max_attempts:
                raise
            return _given_up(error.code, error.message)
        except InvalidInput as error:
            return _given_up(error.code, error.message)
        return HandlerResult(JobStatus.SUCCEEDED, {"response_status": status})


def _given_up(code: str, message: str) -> HandlerResult:
    return HandlerResult(JobStatus.FAILED, {"error": message}, None, code, message, dead_letter=False)
