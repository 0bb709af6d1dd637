"""What submitting reads and writes: the problem, and the submissions of several requests in one transaction.

Each request gets its own response. A request whose idempotency key exists is not executed again: it gets the stored
response, or an error if it is another request. Of two requests with the same key in one transaction, the first one
counts.

A stored response is written before the submissions and so without their numbers; they are added when it is returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import AdjudgeError, IdempotencyKeyReused, OutcomeUnknown, Unavailable
from adjudge.observe.logs import get_logger
from adjudge.store.engine.driver import Database, Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging import queries
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission, ProblemRef
from adjudge.store.judging.submission_listener import SubmissionListener
from adjudge.store.ops import idempotency_keys
from adjudge.store.ops.idempotency_keys import IdempotencyKey, StoredResponse

_TOGETHER: Final = 1_000
"""Maximum number of submissions per transaction; a larger request gets a transaction of its own."""

_log = get_logger(__name__)


RESOLVE_PROBLEMS = Statement(
    "problems.resolve",
    "Find problems by slug or id, with their published revision.",
    """
    SELECT given_ref, problems.id AS id, published_revision_id, owner_id
    FROM {given} JOIN problems ON slug = given_ref
    UNION ALL
    SELECT given_ref, problems.id AS id, published_revision_id, owner_id
    FROM {given} JOIN problems ON problems.id = given_ref
    """,
    input_columns={"given_ref": "text"},
)
FIND_DEFINITION = Statement(
    "problems.find_definition",
    "Read the judging definition of a revision.",
    "SELECT definition FROM problem_revisions WHERE id = :revision_id",
)
FIND_DEFINITIONS = Statement(
    "problems.find_definitions",
    "Read the judging definitions of several revisions.",
    "SELECT id, definition FROM {given} JOIN problem_revisions ON id = given_id",
    input_columns={"given_id": "text"},
)


@dataclass(frozen=True, slots=True)
class BatchedSubmit:
    """The submissions of one request, and their response."""

    submissions: tuple[NewSubmission, ...]
    answer: StoredResponse
    key: IdempotencyKey | None = None


async def resolve_problems(tx: Tx, refs: Sequence[str]) -> dict[str, ProblemRef]:
    """Problems by the slug or id that names them."""
    rows = await tx.fetch(RESOLVE_PROBLEMS, [(ref,) for ref in dict.fromkeys(refs)])
    return {row["given_ref"]: ProblemRef(row["id"], row["published_revision_id"], row["owner_id"]) for row in rows}


async def find_definition(tx: Tx, revision_id: str) -> Mapping[str, Any]:
    row = or_not_found(await fetch_one(tx, FIND_DEFINITION, revision_id=revision_id), "revision", revision_id)
    document: Mapping[str, Any] = json.loads(row["definition"])
    return document


async def find_definitions(tx: Tx, revision_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The judging definitions of those of the revisions that exist, by id."""
    rows = await tx.fetch(FIND_DEFINITIONS, [(item,) for item in revision_ids])
    return {row["id"]: json.loads(row["definition"]) for row in rows}


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


class SubmitBatcher:
    """Group commit: requests that arrive during a commit are inserted together by the next one.

    A request that arrives alone is committed immediately. Once a full batch waits, a second writer commits it in
    parallel. A request that cannot be inserted does not fail the others of its batch.
    """

    def __init__(self, database: Database, jobs: JobCommands, listener: SubmissionListener | None = None) -> None:
        self._database = database
        self._submissions = SubmissionCommands(jobs, listener=listener)
        self._batcher: Batcher[BatchedSubmit, StoredResponse | Exception] = Batcher(
            self._write, name="submit", max_weight=_TOGETHER, weight=_submissions_of, writers=2, isolate=_may_be_of_one
        )

    async def submit(self, order: BatchedSubmit) -> StoredResponse:
        """Insert a request and wait for the commit; a repeated idempotency key gets the stored response."""
        answer = await self._batcher.put(order)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _write(self, batch: Sequence[BatchedSubmit]) -> Sequence[StoredResponse | Exception]:
        try:
            return await self._write_batch(batch)
        except OutcomeUnknown:
            return await self._look_up(batch)

    async def _write_batch(self, batch: Sequence[BatchedSubmit]) -> Sequence[StoredResponse | Exception]:
        return await self._database.transact(lambda tx: submit_batch(tx, self._submissions, batch))

    async def _look_up(self, batch: Sequence[BatchedSubmit]) -> list[StoredResponse | Exception]:
        """Look up what a commit with an unknown outcome has inserted; insert the other requests again, once."""
        ids = [item.id for order in batch for item in order.submissions]
        try:
            known = await self._database.read(lambda tx: queries.find_numbers(tx, ids))
        except AdjudgeError as error:
            _log.warning("submit_result_unknown", error=error.message, submissions=len(ids))
            return [OutcomeUnknown()] * len(batch)
        missing = [order for order in batch if order.submissions[0].id not in known]
        again = iter(await self._insert_again(missing))
        return [
            add_numbers(order.answer, known) if order.submissions[0].id in known else next(again) for order in batch
        ]

    async def _insert_again(self, orders: Sequence[BatchedSubmit]) -> Sequence[StoredResponse | Exception]:
        """Insert requests together, or each alone if one of them may be at fault."""
        if not orders:
            return []
        try:
            return await self._write_batch(orders)
        except Exception as error:  # noqa: BLE001 — it is passed to the callers of these requests
            if len(orders) == 1 or not _may_be_of_one(error):
                return [error] * len(orders)
        return [answer for order in orders for answer in await self._insert_again([order])]


def _may_be_of_one(error: Exception) -> bool:
    """Whether one request may be at fault: an outage is that of all, and trying each would prolong it."""
    return not isinstance(error, Unavailable)


def _submissions_of(order: BatchedSubmit) -> int:
    return len(order.submissions)
