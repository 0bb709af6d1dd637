"""Which requests are tried again, and when.

A request that may be repeated is tried again when no answer came and when the server says that it is busy or away. One
that may not be repeated is tried again only where it cannot have been acted on: nobody was there, or 429. A submission
always carries an idempotency key, so it may be repeated and is never doubled.
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
    """How often to try, and how long to wait in between."""

    policy: RetryPolicy = field(default_factory=lambda: RetryPolicy(max_retries=6, base_ms=250, cap_ms=10_000))
    longest_wait_sec: float = 60.0
    """A server that wants to be left alone for longer gets its way: the error is raised at once."""
    clock: Clock = time.monotonic

    def delay_sec(self, failures: int, failure: ClientError) -> float | None:
        """How long to wait after the ``failures``-th failure; None: give up."""
        if failures > self.policy.max_retries:
            return None
        backoff_sec = self.policy.delay_ms(failures, random.random()) / 1000  # noqa: S311  # it spreads a herd
        asked_sec = failure.retry_after_sec if isinstance(failure, ApiError) else None
        if asked_sec is None:
            return backoff_sec
        return max(asked_sec, backoff_sec) if asked_sec <= self.longest_wait_sec else None


def send_with_retries(request: HttpRequest, patience: ClientRetryPolicy) -> Program[HttpResponse]:
    """Send a request until it is answered; raise what the last failure was."""
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
        pause_sec = patience.delay_sec(failures, failure)
        if pause_sec is None:
            raise failure
        yield Delay(pause_sec)
    raise AssertionError("counting never ends")


def is_transient(request: HttpRequest, answer: HttpResponse) -> bool:
    """Whether the same request may fare better soon, and does no harm."""
    return answer.status == _BUSY or (request.is_repeatable and answer.status in _AWAY)
