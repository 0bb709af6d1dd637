"""Steps: nodes that ended well and the nodes that follow from them, written together by one statement.

This is the short way for what happens nearly always: nodes that succeeded, in runs that go on, whose dependents ask
for nothing but success. It does what ``jobs.finish``, ``chain_nodes.finish``, ``chain_runs.count_nodes``,
``chain_nodes.count_deps``, ``jobs.insert``, ``jobs.claim`` and ``chain_nodes.start`` do one after another, with the
same fence, locks in the same order and the same history. Rows that ask for more make it ``Unfit``, and nothing of it
happens: a run that is to stop or would end, a dependent that would be skipped.

A job whose worker takes it on is born running: leased, with its attempt, and without a row in the outbox, because there
is nothing to deliver. Should it come back, it gets its row then.

Within one statement of PostgreSQL every part reads the same snapshot. Still nobody counts twice: an UPDATE that had to
wait for a row goes on with that row's latest version, and all that is decided is decided from rows updated here. A
session plans it once, for a row of each kind: no two of its long lists may be held against each other, but for those
who follow against those who end, whose product ``EDGES_MAX`` bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from adjudge.domain.states import JobStatus, NodeStatus, RunStatus
from adjudge.store import chain_statements as nodes
from adjudge.store import job_statements as jobs
from adjudge.store import outbox
from adjudge.store.bells import OUTBOX
from adjudge.store.driver import Tx, Unfit
from adjudge.store.job_rows import finish_row
from adjudge.store.job_values import Finish, NewJob
from adjudge.store.statement import Dialect, Statement

EDGES_MAX: Final = 100_000
_READY: Final = "waiting_on = {n} AND deps_failed = 0 AND deps_skipped = 0"


def _begins(number: str, ready: str, worker: str) -> str:
    """How a dependent is counted down, and begins where that was the last and a worker takes it on."""
    taken = f"{ready} AND {worker} IS NOT NULL"
    return f"""
        waiting_on = waiting_on - {number}, deps_success = deps_success + {number}, updated_at = {{now}},
        prior_status = CASE WHEN {taken} THEN chain_nodes.status ELSE chain_nodes.prior_status END,
        status = CASE WHEN {taken} THEN 'running' ELSE chain_nodes.status END,
        attempt = CASE WHEN {taken} THEN 1 ELSE chain_nodes.attempt END,
        started_at = CASE WHEN {taken} THEN {{now}} ELSE chain_nodes.started_at END,
        actor = CASE WHEN {taken} THEN {worker} ELSE chain_nodes.actor END,
        reason = CASE WHEN {taken} THEN 'claimed' ELSE chain_nodes.reason END"""


_BORN = """
    INSERT INTO jobs (id, kind, chain_run_id, node_id, max_attempts, priority, timeout_ms, available_at, payload, actor,
                      trace_id, created_at, updated_at, status, prior_status, attempt_id, lease_owner, lease_until,
                      reason, started_at)
    SELECT {p}job_id, 'node', {p}run_id, {p}node_id, {p}max_attempts, {p}priority, {p}timeout_ms, {{now}}, {p}payload,
           COALESCE({p}worker, 'engine'), {p}trace_id, {{now}}, {{now}},
           CASE WHEN {p}worker IS NULL THEN 'pending' ELSE 'running' END,
           CASE WHEN {p}worker IS NULL THEN NULL ELSE 'pending' END, CASE WHEN {p}worker IS NULL THEN 0 ELSE 1 END,
           {p}worker, CASE WHEN {p}worker IS NULL THEN NULL ELSE {{now}} + :lease_us END,
           CASE WHEN {p}worker IS NULL THEN NULL ELSE 'claimed' END,
           CASE WHEN {p}worker IS NULL THEN NULL ELSE {{now}} END
    """
_FOLLOW: Final = {
    "run_id": "text",
    "node_id": "text",
    "job_id": "text",
    "worker": "text",
    "max_attempts": "bigint",
    "priority": "bigint",
    "timeout_ms": "bigint",
    "payload": "jsonb",
    "trace_id": "text",
}
_READY_NOW: Final = _READY.format(n="n")


def _step(follow: str) -> str:
    """The whole step; ``follow`` is a relation of the nodes that may follow, each with the jobs that it comes after."""
    return f"""
    WITH ended_job AS (
        UPDATE jobs SET prior_status = status, status = 'succeeded', result = given_result,
            lease_owner = NULL, lease_until = NULL, actor = given_owner, reason = 'finished', error_code = NULL,
            error = NULL, finished_at = {{now}}, updated_at = {{now}}
        FROM {{given}}
        WHERE id = given_id AND attempt_id = given_attempt AND lease_owner = given_owner
          AND COALESCE(status, '') = 'running' AND lease_until > {{now}}
        RETURNING id, given_owner, given_run_id, given_node_id, given_artifact, given_digest, given_bytes
    ), ended_node AS (
        UPDATE chain_nodes SET prior_status = status, status = 'success', ended_at = {{now}}, updated_at = {{now}},
            actor = given_owner, reason = 'finished', artifact = given_artifact, artifact_digest = given_digest,
            artifact_bytes = given_bytes, place = NULL, last_error = NULL
        FROM ended_job
        WHERE {nodes.NODE} AND job_id = ended_job.id AND {nodes.STANDS} IN ('running', 'retrying')
        RETURNING chain_nodes.run_id AS run_id, job_id, started_at, ended_at
    ), run AS (
        UPDATE chain_runs SET updated_at = {{now}}, nodes_open = nodes_open
            - n / CASE WHEN {nodes.RUN_STANDS} = 'running' AND nodes_open > n THEN 1 ELSE 0 END
        FROM (SELECT run_id, count(*) AS n FROM ended_node GROUP BY run_id ORDER BY run_id DESC) AS ended
        WHERE id = ended.run_id
        RETURNING id
    ), ended AS MATERIALIZED (
        SELECT job_id FROM ended_node JOIN run ON run.id = ended_node.run_id
    ), follow AS MATERIALIZED (
        SELECT {", ".join(_FOLLOW)},
            (SELECT count(*) FROM ended WHERE ended.job_id = ANY (CAST(after AS text[]))) AS n
        FROM {follow}
    ), moved AS (
        UPDATE chain_nodes SET
            {_begins("n", _READY_NOW, "follow.worker").strip()},
            job_id = CASE WHEN {_READY_NOW} THEN follow.job_id ELSE chain_nodes.job_id END,
            deps_failed = deps_failed / CASE WHEN waiting_on = n AND deps_failed + deps_skipped > 0 THEN 0 ELSE 1 END
        FROM follow
        WHERE n > 0 AND chain_nodes.run_id = follow.run_id AND chain_nodes.node_id = follow.node_id
          AND {nodes.STANDS} = 'pending'
        RETURNING chain_nodes.job_id AS given_job_id, follow.*
    ), born AS (
        {_BORN.format(p="").strip()}
        FROM moved WHERE given_job_id = job_id
        RETURNING id, priority, status, lease_owner, lease_until, started_at
    ), noted AS (
        INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at)
        SELECT id, 'pending', 'running', 1, lease_owner, 'claimed', started_at FROM born WHERE status = 'running'
    ), told AS (
        INSERT INTO outbox (job_id, priority, next_attempt_at, created_at)
        SELECT id, LEAST(GREATEST(priority, 0), 3), {{now}}, {{now}} FROM born WHERE status = 'pending'
    )
    SELECT ended_job.id AS id, 'succeeded' AS status, started_at, ended_at AS until
    FROM ended_job LEFT JOIN ended_node ON job_id = ended_job.id
    UNION ALL SELECT id, status, started_at, lease_until FROM born
    """


_ENDS: Final = {
    "given_id": "text",
    "given_attempt": "bigint",
    "given_owner": "text",
    "given_result": "jsonb",
    **nodes.KEY,
    "given_artifact": "jsonb",
    "given_digest": "text",
    "given_bytes": "bigint",
}
_AFTER: Final = {**_FOLLOW, "after": "text"}
_LISTS: Final = ", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in _AFTER.items())
_VALUES: Final = ", ".join(f"CAST(:{name} AS {kind}) AS {name}" for name, kind in _AFTER.items())

STEP = Statement(
    "chain_steps.take",
    "End nodes that succeeded, count them for those that depend on them, and let those begin, all at once.",
    _step(f"unnest({_LISTS}) AS given_follow({', '.join(_AFTER)})"),
    given=_ENDS,
    only=Dialect.POSTGRES,
)

STEP_TO_ONE = Statement(
    "chain_steps.take_to_one",
    "End nodes that succeeded, count them for the one node that depends on them, and let it begin, all at once.",
    _step(f"(SELECT {_VALUES}) AS given_follow"),
    given=_ENDS,
    only=Dialect.POSTGRES,
)

_READY_GIVEN: Final = _READY.format(n="given_ended")
MOVE = Statement(
    "chain_steps.move",
    "Count dependencies that succeeded; a node of which it was the last gets its job, and begins if a worker takes it.",
    f"""
    UPDATE chain_nodes SET
        {_begins("given_ended", _READY_GIVEN, "given_worker").strip()},
        job_id = CASE WHEN {_READY_GIVEN} THEN given_job_id ELSE chain_nodes.job_id END
    FROM {{given}}
    WHERE {nodes.NODE} AND {nodes.STANDS} = 'pending'
    RETURNING waiting_on, deps_failed, deps_skipped, job_id
    """,
    given={**nodes.KEY, "given_ended": "bigint", "given_job_id": "text", "given_worker": "text"},
    only=Dialect.SQLITE,
)

BEAR = Statement(
    "chain_steps.bear",
    "Create jobs of nodes; one that a worker takes on is born running.",
    f"""
    {_BORN.format(p="given_").strip()}
    FROM {{given}} WHERE true RETURNING id, status, lease_owner, lease_until, started_at
    """,
    given={f"given_{name}": kind for name, kind in _FOLLOW.items()},
    only=Dialect.SQLITE,
)

NOTE = Statement(
    "chain_steps.note",
    "Note the claims of jobs that were born running.",
    """
    INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at)
    SELECT given_id, 'pending', 'running', 1, given_worker, 'claimed', given_at FROM {given}
    """,
    given={"given_id": "text", "given_worker": "text", "given_at": "bigint"},
    only=Dialect.SQLITE,
)


class StepEnd(NamedTuple):
    """A node that succeeded: how its job ends, and what it leaves behind."""

    finish: Finish
    run_id: str
    node_id: str
    artifact: str | None
    digest: str | None
    size_bytes: int
    follows: tuple[int, ...]
    """Which of the step's followers depend on it."""


class Follower(NamedTuple):
    """A node that depends on ended ones: its job, and who takes it on, should they have been the last."""

    job: NewJob
    payload: str
    """The job's, in JSON."""
    worker: str | None = None

    @property
    def row(self) -> tuple[object, ...]:
        """What a born job's row is made of."""
        job = self.job
        return (
            job.chain_run_id,
            job.node_id,
            job.id,
            self.worker,
            job.max_attempts,
            job.priority,
            job.timeout_ms,
            self.payload,
            job.trace,
        )


class Ended(NamedTuple):
    """A job that a step has ended; of a node that had moved on, there are no moments."""

    started_at: int | None
    ended_at: int | None


class Born(NamedTuple):
    """A job that a step has created."""

    status: JobStatus
    started_at: int | None
    lease_until: int | None


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step came to. A job that was to end and is not among those ended was refused by its fence."""

    ended: dict[str, Ended]
    born: dict[str, Born]


async def take(tx: Tx, ends: Sequence[StepEnd], followers: Sequence[Follower], *, lease_ms: int) -> Stepped:
    """Write a step as the whole of a transaction; ``Unfit`` where it takes the long way."""
    ends = sorted(ends, key=lambda end: end.finish.fence.job_id)
    if tx.dialect is Dialect.SQLITE:
        stepped = await _in_turn(tx, ends, followers, lease_ms * 1_000)
    else:
        stepped = await _at_once(tx, ends, followers, lease_ms * 1_000)
    if any(born.status is JobStatus.PENDING for born in stepped.born.values()):
        tx.ring(OUTBOX)
    return stepped


async def _at_once(tx: Tx, ends: Sequence[StepEnd], followers: Sequence[Follower], lease_us: int) -> Stepped:
    after: list[list[str]] = [[] for _ in followers]
    for end in ends:
        for number in end.follows:
            after[number].append(end.finish.fence.job_id)
    follow = [(*follower.row, f"{{{','.join(job_ids)}}}") for follower, job_ids in zip(followers, after, strict=True)]
    statement, values = (STEP_TO_ONE, follow[0]) if len(follow) == 1 else (STEP, map(list, zip(*follow, strict=True)))
    named = dict(zip(_AFTER, values, strict=True))
    rows = await tx.conclude(statement, [_end_row(end) for end in ends], lease_us=lease_us, **named)
    found = Stepped({}, {})
    for job_id, status, started_at, until in rows:
        if status == "succeeded":
            found.ended[job_id] = Ended(started_at, until)
        else:
            found.born[job_id] = Born(JobStatus(status), started_at, until)
    return found


def _end_row(end: StepEnd) -> tuple[object, ...]:
    job_id, attempt, owner, _, result, *_ = finish_row(end.finish)
    return job_id, attempt, owner, result, end.run_id, end.node_id, end.artifact, end.digest, end.size_bytes


async def _in_turn(tx: Tx, ends: Sequence[StepEnd], followers: Sequence[Follower], lease_us: int) -> Stepped:
    """The same by several statements, where each costs no round trip."""
    by_job = {end.finish.fence.job_id: end for end in ends}
    over = [row["id"] for row in await tx.fetch(jobs.FINISH, [finish_row(end.finish) for end in ends])]
    rows = [_node_row(by_job[job_id]) for job_id in over]
    ended = {(row["run_id"], row["node_id"]): row for row in await tx.fetch(nodes.END_NODES, rows)} if rows else {}
    tally: dict[str, int] = {}
    for run_id, _ in ended:
        tally[run_id] = tally.get(run_id, 0) + 1
    counts = [(run_id, 0, -number, 0) for run_id, number in sorted(tally.items(), reverse=True)]
    for row in await tx.fetch(nodes.COUNT_NODES, counts) if counts else []:
        if row["status"] != RunStatus.RUNNING or row["nodes_open"] <= 0:
            raise Unfit("a run is to stop, or would end")
    born = await _follow(tx, [end for end in ends if (end.run_id, end.node_id) in ended], followers, lease_us)
    found = Stepped({}, born)
    for job_id in over:
        node = ended.get((by_job[job_id].run_id, by_job[job_id].node_id))
        found.ended[job_id] = Ended(None, None) if node is None else Ended(node["started_at"], node["ended_at"])
    return found


async def _follow(tx: Tx, ends: Sequence[StepEnd], followers: Sequence[Follower], lease_us: int) -> dict[str, Born]:
    tally = dict[int, int]()
    for end in ends:
        for number in end.follows:
            tally[number] = tally.get(number, 0) + 1
    moves = [
        (item.job.chain_run_id, item.job.node_id, number, item.job.id, item.worker)
        for item, number in ((followers[index], number) for index, number in tally.items())
    ]
    ready = set()
    for row in await tx.fetch(MOVE, moves) if moves else []:
        if row["waiting_on"] == 0 and row["deps_failed"] + row["deps_skipped"]:
            raise Unfit("a dependent would be skipped")
        ready.add(row["job_id"])
    born = [follower for follower in followers if follower.job.id in ready]
    rows = await tx.fetch(BEAR, [item.row for item in born], lease_us=lease_us) if born else []
    running = [(row["id"], row["lease_owner"], row["started_at"]) for row in rows if row["status"] == JobStatus.RUNNING]
    if running:
        await tx.execute(NOTE, running)
    await outbox.insert(tx, [(item.job.id, item.job.priority, 0) for item in born if item.worker is None])
    return {row["id"]: Born(JobStatus(row["status"]), row["started_at"], row["lease_until"]) for row in rows}


def _node_row(end: StepEnd) -> tuple[object, ...]:
    fence = end.finish.fence
    return (
        end.run_id,
        end.node_id,
        fence.job_id,
        str(NodeStatus.SUCCESS),
        fence.owner,
        end.finish.reason,
        end.artifact,
        end.digest,
        end.size_bytes,
    )
