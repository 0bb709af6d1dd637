"""Breaking guards on purpose: a simulator that does not notice is worth nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from adjudge.store import Tx
from adjudge.store.engine.script import Script
from adjudge.store.engine.statement import RowT, Statement
from adjudge.store.jobs import statements as job_statements
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Capacity, Fence, FinishReport, JobResult

BreakGuard = Callable[[pytest.MonkeyPatch], None]


def without(statement: Statement[RowT], *guards: str) -> Statement[RowT]:
    """A statement that lets everything through that the guards would not."""
    text = statement.sql
    for guard in guards:
        assert guard in text, guard
        text = text.replace(guard, "1 = 1")
    return replace(statement, name=f"{statement.name}.broken", sql=text)


def without_in(script: Script, step: str, *guards: str, **instead: str) -> Script:
    """A script one step of which lets everything through that the guards would not; ``instead`` are other changes."""
    (old,) = [item for item in script.steps if item.name == step]
    text = old.sql
    for guard, replacement in {**dict.fromkeys(guards, "1 = 1"), **instead}.items():
        assert guard in text, guard
        text = text.replace(guard, replacement)
    steps = tuple(replace(item, sql=text) if item is old else item for item in script.steps)
    return replace(script, name=f"{script.name}.broken", steps=steps)


def finish_without_its_fence(patch: pytest.MonkeyPatch) -> None:
    """A result of any attempt is written with the fence of the present one."""
    finish = JobCommands.finish_and_claim_next

    async def unfenced(
        self: JobCommands, tx: Tx, finishes: Sequence[JobResult], capacity: Capacity | None = None
    ) -> FinishReport:
        rows = await tx.fetch(job_statements.INSPECT, [(item.fence.job_id,) for item in finishes]) if finishes else []
        held = {row.id: Fence(row.id, row.attempt_id, row.lease_owner or "") for row in rows}
        return await finish(self, tx, [item._replace(fence=held[item.fence.job_id]) for item in finishes], capacity)

    patch.setattr(JobCommands, "finish_and_claim_next", unfenced)
