"""Seeds of misfortune, and proof that the simulator would notice if a guard were missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from adjudge.store import Tx, job_statements, outbox
from adjudge.store.job_values import Fence, Finish, Job, Outcome
from adjudge.store.jobs import Jobs
from adjudge.store.statement import Statement
from adjudge.stream.driver import Message
from adjudge.worker.loop import Worker
from tests.simulation.run import quiet, simulate, template
from tests.simulation.world import Odds

BATCHES = 10
SEEDS_A_BATCH = 20
MUTANT_SEEDS = range(1, 61)


@pytest.fixture(scope="module")
def schema() -> Iterator[sqlite3.Connection]:
    with quiet():
        yield template()


@pytest.mark.parametrize(
    "batch", [pytest.param(batch, marks=pytest.mark.slow if batch else ()) for batch in range(BATCHES)]
)
def test_every_job_ends_once_with_the_right_verdict_whatever_fails(batch: int, schema: sqlite3.Connection) -> None:
    first = 1 + batch * SEEDS_A_BATCH
    failures = {seed: found for seed in range(first, first + SEEDS_A_BATCH) if (found := simulate(seed, schema))}
    assert failures == {}, "replay one with: make simulate SEEDS=<seed>"


def test_the_same_seed_plays_the_same_story(schema: sqlite3.Connection) -> None:
    def story(seed: int) -> list[str]:
        seen: list[str] = []
        simulate(seed, schema, witness=lambda scenario: seen.extend(_log(scenario.world.connection)))
        return seen

    assert story(7) == story(7)
    assert story(7) != story(8)


def _log(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "SELECT job_id, from_status, to_status, attempt_id, actor, at FROM job_status_log ORDER BY id"
    )
    return [repr(tuple(row)) for row in rows]


def _without(statement: Statement, *guards: str) -> Statement:
    text = statement.sql
    for guard in guards:
        assert guard in text, guard
        text = text.replace(guard, "1 = 1")
    return replace(statement, name=f"{statement.name}.broken", sql=text)


def _finish_without_its_fence(patch: pytest.MonkeyPatch) -> None:
    """Whoever comes with a result writes it, in the name of whoever holds the job."""
    finish = Jobs.finish

    async def unfenced(self: Jobs, tx: Tx, finishes: Sequence[Finish]) -> Outcome[Job]:
        rows = await tx.fetch(job_statements.INSPECT, [(item.fence.job_id,) for item in finishes]) if finishes else []
        held = {row["id"]: Fence(row["id"], row["attempt_id"], row["lease_owner"]) for row in rows}
        return await finish(self, tx, [item._replace(fence=held[item.fence.job_id]) for item in finishes])

    patch.setattr(Jobs, "finish", unfenced)


def _claim_without_its_gate(patch: pytest.MonkeyPatch) -> None:
    gate = f"{job_statements._STANDS} IN ('pending', 'queued')"
    patch.setattr(job_statements, "CLAIM", _without(job_statements.CLAIM, gate))


def _retry_without_a_bound(patch: pytest.MonkeyPatch) -> None:
    release = _without(job_statements.RELEASE, "attempt_id < max_attempts + given_free_attempts")
    release = replace(release, sql=release.sql.replace("+ given_free_attempts", "+ 1"))
    patch.setattr(job_statements, "RELEASE", release)


def _job_without_its_outbox_row(patch: pytest.MonkeyPatch) -> None:
    insert = outbox.insert
    calls = iter(range(10_000))

    async def forgetful(tx: Any, rows: Any) -> None:
        if next(calls) % 5 != 4:
            await insert(tx, rows)

    patch.setattr(outbox, "insert", forgetful)


def _acknowledged_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    execute = Worker._execute
    taken = Worker._start

    def start(self: Worker, job: Any, message: Message, claimed_at: float) -> None:
        self.__dict__.setdefault("messages", {})[job.id] = message
        taken(self, job, message, claimed_at)

    async def hasty(self: Worker, job: Any, fence: Any) -> Any:
        end = await execute(self, job, fence)
        await self._acknowledge([self.__dict__["messages"][job.id]])
        return end

    patch.setattr(Worker, "_start", start)
    patch.setattr(Worker, "_execute", hasty)


def _patrol_without_watchdog(patch: pytest.MonkeyPatch) -> None:
    async def blind(*_: object, **__: object) -> Sequence[object]:
        return ()

    patch.setattr("adjudge.store.jobs.Jobs.expire", blind)


@pytest.mark.parametrize(
    "break_guard",
    [
        _finish_without_its_fence,
        _claim_without_its_gate,
        _retry_without_a_bound,
        _job_without_its_outbox_row,
        _acknowledged_before_it_is_written,
        _patrol_without_watchdog,
    ],
)
def test_the_simulator_notices_a_missing_guard(
    break_guard: Callable[[pytest.MonkeyPatch], None], schema: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_guard(monkeypatch)
    assert any(simulate(seed, schema, Odds(message_twice=0.3)) for seed in MUTANT_SEEDS)
