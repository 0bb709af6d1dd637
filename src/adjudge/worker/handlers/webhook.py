"""Handler of webhooks: sends one signed POST to a public address (``services.http_client``), without redirects."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from adjudge import __version__
from adjudge.domain.errors import AdjudgeError, InvalidInput
from adjudge.domain.states import JobStatus
from adjudge.services.http_client import GuardedTransport, PrivateHostAllowList, Resolve, resolve_host
from adjudge.services.signing import sign_delivery
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.webhooks import commands as webhook_commands
from adjudge.store.webhooks.models import DeliveryRequest, WebhookDelivered, WebhookFailed, WebhookSkipped
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.delivery import DeliveryFailed, deliver


class WebhookHandler:
    """Sends the delivery of a job."""

    def __init__(
        self,
        database: Database,
        allowed: PrivateHostAllowList,
        *,
        timeout_sec: float = 10.0,
        resolve: Resolve = resolve_host,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._timeout_sec = timeout_sec
        self._clock = clock
        self._transport = GuardedTransport(allowed, resolve)

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        del job_payload
        return ()

    async def run(self, job: Job) -> HandlerResult:
        """Send once; any response but 2xx is a failure, and the job is retried with growing delays.

        After the last failure the job gets no dead letter: the receiver has to fix it, and the owner sees it.
        """
        request = await self._database.read(
            lambda tx: webhook_commands.find_delivery_request(tx, job.payload["delivery_id"])
        )
        if request is None or not (request.is_active or request.event == webhook_commands.PING):
            return HandlerResult(JobStatus.SUCCEEDED, {"skipped": True}, WebhookSkipped())
        try:
            status = await self._post(request, job.attempt_id)
        except DeliveryFailed as error:
            if job.attempt_id < job.max_attempts:
                raise
            return _given_up(error, error.response_status)
        except InvalidInput as error:
            return _given_up(error)
        return HandlerResult(JobStatus.SUCCEEDED, {"response_status": status}, WebhookDelivered(status))

    async def _post(self, request: DeliveryRequest, attempt: int) -> int:
        body, timestamp = request.body.encode(), int(self._clock())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"adjudge/{__version__}",
            "X-Adjudge-Event": request.event,
            "X-Adjudge-Delivery": request.delivery_id,
            "X-Adjudge-Attempt": str(attempt),
            "X-Adjudge-Signature": sign_delivery(request.secret, timestamp, body),
        }
        return await deliver(
            self._transport, "POST", request.url, headers=headers, body=body, timeout_sec=self._timeout_sec
        )


def _given_up(error: AdjudgeError, response_status: int | None = None) -> HandlerResult:
    """The receiver failed, not Adjudge: the owner of the delivery sees it and may repeat it, without a dead letter."""
    outcome = WebhookFailed(error.message, response_status)
    return HandlerResult(
        JobStatus.FAILED, {"error": error.message}, outcome, error.code, error.message, dead_letter=False
    )
