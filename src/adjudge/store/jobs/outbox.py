"""The outbox: jobs whose message must still be published. Committed with the job, published by the dispatcher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.store.engine.driver import Tx
from adjudge.store.engine.notify import CHANNEL_OUTBOX
from adjudge.store.engine.script import Script, Step
from adjudge.store.engine.statement import Rows, Statement
from adjudge.store.jobs.models import HELD_AT, DispatchedMessage


@dataclass(frozen=True, slots=True)
class DueRow:
    """A job to be published; its fields are the columns of ``outbox.take_due``, in their order."""

    job_id: str
    kind: str
    priority: int
    trace_id: str | None
    payload: str
    attempts: int
    waited_us: int
    """Time since the delivery was due; retries of the delivery do not change that."""
    dispatch_seq: int
    """Which read of the row this is; after a later read or insert, this one has no effect."""


# Rows are found by their job; ``COALESCE`` keeps PostgreSQL from starting at the partial index of what is pending.

INSERT_AGAIN = Statement(
    "outbox.insert_again",
    "Request another delivery of jobs, after a retry or a lost message.",
    f"""
    INSERT INTO outbox (job_id, priority, next_attempt_at, turn_at, due_at)
    SELECT again_id, again_band, again_at, again_at, again_at FROM (
        SELECT given_id AS again_id,
               CASE WHEN priority < 0 THEN 0 WHEN priority > 3 THEN 3 ELSE priority END AS again_band,
               CASE WHEN available_at >= {HELD_AT} THEN available_at ELSE {{now}} + given_delay_us END AS again_at
        FROM {{given}} JOIN jobs ON id = given_id
    ) AS again WHERE true
    ON CONFLICT (job_id) DO UPDATE SET state = 'pending', attempts = 0, dispatch_seq = outbox.dispatch_seq + 1,
        next_attempt_at = excluded.next_attempt_at, turn_at = excluded.turn_at, due_at = excluded.due_at,
        dispatched_at = NULL, stream_entry_id = NULL, last_error = NULL
    """,
    input_columns={"given_id": "text", "given_delay_us": "bigint"},
)
"""A job that was claimed when it was created has no row until it is released."""

CAPACITY_PARAMETERS = ("urgent_capacity", "high_capacity", "ordinary_capacity", "low_capacity")
"""The maximum number of rows for each band, in the order of the bands; a priority in the outbox is a band."""


def _due(lock: str = "") -> str:
    return " UNION ALL ".join(
        f"""
        SELECT id FROM (
            SELECT id FROM outbox WHERE state = 'pending' AND priority = {band} AND turn_at < {HELD_AT}
              AND next_attempt_at <= {{now}}
            ORDER BY turn_at, id LIMIT :{capacity} {lock}
        ) AS {capacity}
        """
        for band, capacity in enumerate(CAPACITY_PARAMETERS)
    )


_TAKE = """
    UPDATE outbox SET attempts = attempts + 1, dispatch_seq = dispatch_seq + 1,
        next_attempt_at = {now} + CAST(:base_us AS bigint)
            * (1 << CAST(CASE WHEN attempts < 10 THEN attempts ELSE 10 END AS integer)),
        state = CASE WHEN (SELECT status FROM jobs WHERE jobs.id = job_id) IN ('succeeded', 'failed', 'canceled')
            THEN 'dropped' ELSE state END
    """
_TAKEN = """
    RETURNING outbox.id AS row_id, job_id AS taken_id, attempts AS attempts, dispatch_seq AS dispatch_seq,
              due_at AS due_since, state AS taken_state, turn_at AS taken_turn
    """
TAKE_DUE = Script(
    "outbox.take_due",
    "Take due rows of each band for delivery, drop those of jobs that have ended, and read the messages to publish.",
    {},
    (
        Step(
            "taken",
            f"{_TAKE} WHERE id = ANY (ARRAY({_due('FOR UPDATE SKIP LOCKED')})) {_TAKEN}",
            ("row_id", "taken_id", "attempts", "dispatch_seq", "due_since", "taken_state", "taken_turn"),
            is_output=False,
            sqlite=f"{_TAKE} WHERE id IN ({_due()}) {_TAKEN}",
        ),
        Step(
            "message",
            """
            SELECT jobs.id AS job_id, kind, jobs.priority AS priority, trace_id, CAST(payload AS text) AS payload,
                   attempts, {now} - due_since AS waited_us, dispatch_seq
            FROM {taken} JOIN jobs ON jobs.id = taken_id WHERE taken_state = 'pending' ORDER BY taken_turn, row_id
            """,
            ("job_id", "kind", "priority", "trace_id", "payload", "attempts", "waited_us", "dispatch_seq"),
        ),
    ),
)
"""Should the relay die, the rows come due again, later each time.

The array is what makes PostgreSQL choose once. Were the rows to be ``IN`` the choice, it might as well go through the
table and choose anew for each row it meets; and as a choice passes by what is locked, each would be another.
"""

DELIVERY = {"given_id": "text", "given_entry_id": "text", "given_dispatch_seq": "bigint"}

MARK_FAILED = Statement(
    "outbox.mark_failed",
    "Store a delivery error; the row stays pending until its next attempt.",
    """
    UPDATE outbox SET last_error = given_error
    FROM {given} WHERE job_id = given_id AND COALESCE(state, '') = 'pending'
    """,
    input_columns={"given_id": "text", "given_error": "text"},
)

POSTPONE = Statement(
    "outbox.postpone",
    "Try deliveries again a little later, without counting the try: the stream was at fault, not the job.",
    """
    UPDATE outbox SET last_error = given_error, attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END,
        next_attempt_at = {now} + given_delay_us
    FROM {given} WHERE job_id = given_id AND COALESCE(state, '') = 'pending' AND dispatch_seq = given_dispatch_seq
    """,
    input_columns={
        "given_id": "text",
        "given_error": "text",
        "given_dispatch_seq": "bigint",
        "given_delay_us": "bigint",
    },
)

DROP = Statement(
    "outbox.drop",
    "Drop the deliveries of jobs that ended before they were due.",
    """
    UPDATE outbox SET state = 'dropped' FROM {given} WHERE job_id = given_id AND COALESCE(state, '') = 'pending'
    """,
    input_columns={"given_id": "text"},
)
"""The dispatcher would drop them, too, but only when they become due: until then they would count as waiting."""

READ_MESSAGES = Statement(
    "outbox.read_messages",
    "Read the messages of the given jobs.",
    """
    SELECT {columns}
    FROM {given} JOIN jobs ON jobs.id = given_id JOIN outbox ON outbox.job_id = jobs.id
    ORDER BY outbox.id
    """,
    input_columns={"given_id": "text"},
    row=DueRow,
    columns={"job_id": "jobs.id", "priority": "jobs.priority", "waited_us": "{now} - outbox.due_at"},
)

_FIRST = " UNION ALL ".join(
    "SELECT min(next_attempt_at) AS at FROM outbox "
    f"WHERE state = 'pending' AND priority = {band} AND turn_at < {HELD_AT}"
    for band in range(len(CAPACITY_PARAMETERS))
)
NEXT_DUE = Statement(
    "outbox.next_due",
    "Read the time until the next row is due, held ones apart. Asked when none is: then only delayed rows are pending.",
    f"SELECT min(at) - {{now}} AS us FROM ({_FIRST}) AS first_of_each",
)


async def insert_again(tx: Tx, rows: Rows) -> None:
    """Insert or reset rows of released jobs: (job_id, delay_us)."""
    if rows:
        await tx.execute(INSERT_AGAIN, rows)
        tx.notify(CHANNEL_OUTBOX)


async def take_due(
    tx: Tx, *, limit: int, capacities: Sequence[int] | None = None, base_us: int = 1_000_000
) -> list[DueRow]:
    """Take up to ``limit`` due rows of each band; other dispatchers skip them until they are due again.

    ``capacities`` gives the remaining capacity of each band. Rows that are not taken stay in the outbox, where they
    cost nothing, and do not delay other bands. Must be the last operation of its transaction.
    """
    limits = [min(limit, capacity) for capacity in capacities or [limit] * len(CAPACITY_PARAMETERS)]
    asked: dict[str, object] = {"base_us": base_us, **dict(zip(CAPACITY_PARAMETERS, limits, strict=True))}
    found = await tx.run(TAKE_DUE, {}, last=True, **asked)
    return [DueRow(*row) for row in found["message"]]


async def load_messages(tx: Tx, job_ids: Sequence[str]) -> list[DueRow]:
    """The message contents of these jobs, to replace those of damaged messages."""
    return await tx.fetch(READ_MESSAGES, [(job_id,) for job_id in job_ids])


async def next_due_ms(tx: Tx) -> int | None:
    """The time until the next row is due, negative if one is due; None if there is no row."""
    us = (await tx.fetch(NEXT_DUE))[0]["us"]
    return None if us is None else -(-int(us) // 1_000)


def delivery_rows(deliveries: Sequence[DispatchedMessage]) -> Rows:
    """The input rows, in lock order."""
    return sorted((item.job_id, item.entry_id, item.dispatch_seq) for item in deliveries)


async def mark_failed(tx: Tx, rows: Rows) -> None:
    """Store failures: rows of (job_id, error)."""
    if rows:
        await tx.execute(MARK_FAILED, rows)


async def drop(tx: Tx, job_ids: Sequence[str]) -> None:
    """Drop pending rows of jobs that were canceled or failed without a worker; their jobs are locked."""
    if job_ids:
        await tx.execute(DROP, [(job_id,) for job_id in sorted(job_ids)])


async def postpone(tx: Tx, rows: Rows) -> None:
    """Postpone deliveries that the stream could not accept: rows of (job_id, error, taking, delay_us)."""
    if rows:
        await tx.execute(POSTPONE, rows)
