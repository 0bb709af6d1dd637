"""Creates the submissions of several requests in one transaction, each with its own response.

A request whose idempotency key exists is not executed again: it gets the stored response, or an error if it is another
request. Of two requests with the same key in one transaction, the first one counts.

A stored response is written before the submissions and so without their numbers; they are added when it is returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adjudge.domain.errors import AdjudgeError, IdempotencyKeyReused
from adjudge.store.engine.driver import Tx
from adjudge.store.judging import queries
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
    made = await submissions.submit(tx, [item for order in fresh for item in order.submissions])
    numbers = {item.submission_id: item.number for item in made}
    if earlier := [found for answer in stored.values() for found in _submission_ids(answer) if found not in numbers]:
        numbers |= await queries.find_numbers(tx, earlier)
    placed = {id(order) for order in fresh}
    answers = [order.answer if id(order) in placed else _again(order, stored) for order in orders]
    return [answer if isinstance(answer, AdjudgeError) else add_numbers(answer, numbers) for answer in answers]


async def find_stored_response(tx: Tx, key: IdempotencyKey) -> StoredResponse | None:
    """The response to the first request with a key."""
    answer = (await idempotency_keys.find(tx, [key])).get(key)
    if answer is None:
        return None
    ids = [*_submission_ids(answer)]
    return add_numbers(answer, await queries.find_numbers(tx, ids) if ids else {})


def add_numbers(answer: StoredResponse, numbers: Mapping[str, int]) -> StoredResponse:
    """The response with the numbers of its submissions."""

    def numbered(entry: Mapping[str, Any]) -> Mapping[str, Any]:
        number = numbers.get(entry.get("submission_id", ""))
        return entry if number is None else {**entry, "number": number}

    response = answer.response
    if "items" in response:
        return replace(answer, response={**response, "items": [numbered(entry) for entry in response["items"]]})
    return replace(answer, response=numbered(response))


def _submission_ids(answer: StoredResponse) -> Iterator[str]:
    """The submissions that a response names; one to another kind of request names none."""
    for entry in answer.response.get("items", [answer.response]):
        if "submission_id" in entry:
            yield entry["submission_id"]


def _again(order: BatchedSubmit, stored: dict[IdempotencyKey, StoredResponse]) -> StoredResponse | AdjudgeError:
    answer = stored[order.key] if order.key else order.answer
    try:
        return answer.check_request(order.answer.request_digest)
    except IdempotencyKeyReused as refused:
        return refused
