"""Orders: what calls hand in, many of them in one transaction, each with its own answer.

An order with an idempotency key that stands already is not placed again: it gets the first one's answer, or is refused
if it asks for something else. Within one transaction the first of two orders with the same key is the first.
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
    """The submissions of one call, and the answer that they will have."""

    submissions: tuple[NewSubmission, ...]
    answer: StoredResponse
    key: IdempotencyKey | None = None


async def submit_batch(
    tx: Tx, submissions: SubmissionCommands, orders: Sequence[BatchedSubmit]
) -> list[StoredResponse | AdjudgeError]:
    """Place orders; return the answer to each, or why there is none."""
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
