"""The simulator detects a missing guard of the queue."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from adjudge.store.jobs import scripts as job_scripts
from adjudge.store.jobs import statements as job_statements
from adjudge.store.jobs.isolation import BatchOperation, JobIsolation
from adjudge.worker.reader import MessageReader, stop_all
from adjudge.worker.runner import Runner
from tests.simulation.broken_guards import BreakGuard, finish_without_its_fence, without, without_in
from tests.simulation.simulate import simulate
from tests.simulation.world import FaultProbabilities

SEEDS = range(1, 61)


def _claim_without_its_gate(patch: pytest.MonkeyPatch) -> None:
    gate = f"({job_statements._IS_WAITING} OR {job_statements._IS_EXPIRED})"
    patch.setattr(job_statements, "CLAIM", without(job_statements.CLAIM, gate))


def _retry_without_a_bound(patch: pytest.MonkeyPatch) -> None:
    changes = {"attempt_id < max_attempts + given_refund": "1 = 1", "THEN given_refund ELSE 0": "THEN 1 ELSE 0"}
    patch.setattr(job_scripts, "FINISH", without_in(job_scripts.FINISH, "finished_job", **changes))


def _job_without_its_outbox_row(patch: pytest.MonkeyPatch) -> None:
    forgetful = {"FROM {created_job}": "FROM {created_job} WHERE substr(job_id, 8, 1) NOT IN ('3', '7', 'b')"}
    patch.setattr(job_scripts, "CREATE", without_in(job_scripts.CREATE, "announced", **forgetful))


def _acknowledged_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    write = Runner._write

    async def hasty(self: Runner, attempt: Any, result: Any) -> Any:
        await self._acknowledger.ack([attempt.claim.message])
        return await write(self, attempt, result)

    patch.setattr(Runner, "_write", hasty)


def _no_watchdog(patch: pytest.MonkeyPatch) -> None:
    async def blind(*_: object, **__: object) -> Sequence[object]:
        return ()

    patch.setattr("adjudge.store.jobs.commands.JobCommands.release_expired", blind)


def _drain_stops_a_claim_under_way(patch: pytest.MonkeyPatch) -> None:
    async def stop(self: MessageReader, _: float) -> None:
        await stop_all(self._tasks)

    patch.setattr(MessageReader, "stop", stop)


def _failing_listener_fails_the_batch(patch: pytest.MonkeyPatch) -> None:
    async def together(self: JobIsolation, job_ids: Sequence[str], operation: BatchOperation[Any]) -> list[Any]:
        return list(await self._database.transact(lambda tx: operation(tx, job_ids)))

    patch.setattr(JobIsolation, "run", together)
    patch.setattr(JobIsolation, "one_by_one", together)


@pytest.mark.parametrize(
    "break_guard",
    [
        finish_without_its_fence,
        _claim_without_its_gate,
        _retry_without_a_bound,
        _job_without_its_outbox_row,
        _acknowledged_before_it_is_written,
        _no_watchdog,
        _drain_stops_a_claim_under_way,
        _failing_listener_fails_the_batch,
    ],
)
def test_the_simulator_notices_a_missing_guard(
    break_guard: BreakGuard, schema: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_guard(monkeypatch)
    assert any(simulate("judge", seed, schema, FaultProbabilities(message_twice=0.3)) for seed in SEEDS)
