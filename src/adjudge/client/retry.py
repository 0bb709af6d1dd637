"""Which requests are retried, and when.

A repeatable request is retried if there is no response, and on 429, 502, 503 and 504. Any other request is retried only
if the server cannot have processed it: no connection, or 429. A submission always has an idempotency key, so that it is
repeatable and never duplicated.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from adjudge.client.errors import ApiError, ClientError, UnreachableError, error_from_response
from adjudge.client.sans_io import Clock, Delay, HttpRequest, HttpResponse, Program, Send
from adjudge.domain.retry import RetryPolicy

_BUSY: Final = 429
_AWAY: Final = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class ClientRetryPolicy:
    """Number of retries and the delays between them."""

    policy: RetryPolicy = field(default_factory=lambda: RetryPolicy(max_retries=6, base_ms=250, cap_ms=10_000))
    longest_wait_sec: float = 60.0
    """If the server asks for a longer delay (Retry-After), the error is raised immediately."""
    clock: Clock = time.monotonic

    def delay_sec(self, failures: int, failure: ClientError) -> float | None:
        """Delay after the ``failures``-th failure; None: no further retry."""
        if failures > self.policy.max_retries:
            return None
        backoff_sec = self.policy.delay_ms(failures, random.random()) / 1000  # noqa: S311  # jitter, not cryptography
        asked_sec = failure.retry_after_sec if isinstance(failure, ApiError) else None
        if asked_sec is None:
            return backoff_sec
        return max(asked_sec, backoff_sec) if asked_sec <= self.longest_wait_sec else None


def send_with_retries(request: HttpRequest, retry: ClientRetryPolicy) -> Program[HttpResponse]:
    """Send a request with retries; raise the last failure."""
    for failures in count(1):
        failure: ClientError
        try:
            answer: HttpResponse = yield Send(request)
        except UnreachableError as lost:
            if lost.was_sent and not request.is_repeatable:
                raise
            failure = lost
        else:
            if answer.status < 300:
                return answer
            failure = error_from_response(answer)
            if not is_transient(request, answer):
                raise failure
        pause_sec = retry.delay_sec(failures, failure)
        if pause_sec is None:
            raise failure
        yield Delay(pause_sec)
    raise AssertionError("unreachable: count() is infinite")


def is_transient(request: HttpRequest, answer: HttpResponse) -> bool:
    """Whether the request may be retried after this response."""
    return answer.status == _BUSY or (request.is_repeatable and answer.status in _AWAY)
