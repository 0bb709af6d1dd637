"""Creates the submissions of several requests in one transaction, each with its own response.

A request whose idempotency key exists is not executed again: it gets the stored response, or an error if it is another
request. Of two requests with the same key in one transaction, the first one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.domain.errors import AdjudgeError, IdempotencyKeyReused
from adjudge.store.engine.driver import Tx
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.store.ops import idempotency_keys
from adjudge.store.ops.idempotency_keys import IdempotencyKey, StoredResponse


@dataclass(frozen=True, slots=True)
class BatchedSubmit:
    """The submissions of one request, and their response."""

    submissions: tuple[NewSubmission, ...]
    answer: StoredResponse
    key: IdempotencyKey | None = None


async def submit_batch(
    tx: Tx, submissions: SubmissionCommands, orders: Sequence[BatchedSubmit]
) -> list[StoredResponse | AdjudgeError]:
    """Create the submissions; return the response or the error of each request."""
    keyed: dict[IdempotencyKey, BatchedSubmit] = {}
    for order in orders:
        if order.key is not None:
            keyed.setdefault(order.key, order)
    taken = await idempotency_keys.claim(tx, {key: order.answer for key, order in keyed.items()})
    won = {id(order) for key, order in keyed.items() if key in taken}
    fresh = [order for order in orders if order.key is None or id(order) in won]
    stored = await idempotency_keys.find(tx, [order.key for order in orders if order.key and id(order) not in won])
    await submissions.submit(tx, [item for order in fresh for item in order.submissions])
    placed = {id(order) for order in fresh}
    return [order.answer if id(order) in placed else _again(order, stored) for order in orders]


def _again(order: BatchedSubmit, stored: dict[IdempotencyKey, StoredResponse]) -> StoredResponse | AdjudgeError:
    answer = stored[order.key] if order.key else order.answer
    try:
        return answer.check_request(order.answer.request_digest)
    except IdempotencyKeyReused as refused:
        return refused
