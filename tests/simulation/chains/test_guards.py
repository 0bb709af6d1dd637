"""The simulator detects a missing guard of the chain engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from adjudge.chains.advance import ChainRunAdvancer
from adjudge.chains.control import ChainRunControl
from adjudge.chains.dag_cache import DagCache
from adjudge.chains.housekeeping import ChainHousekeeping
from adjudge.chains.node_scheduler import UNLIMITED, SlotAllocator
from adjudge.chains.run_lifecycle import ChainRunLifecycle
from adjudge.executors.subchain import SubchainExecutor
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains import finish as chain_finish
from adjudge.store.chains import waits
from tests.simulation.broken_guards import BreakGuard, finish_without_its_fence, without, without_in
from tests.simulation.simulate import simulate
from tests.simulation.world import FaultProbabilities

SEEDS = range(400, 1000)
_FENCE = "attempt_id = given_attempt AND lease_owner = given_owner"


def _finish_without_its_fence(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks who comes with what a node left behind."""
    finish_without_its_fence(patch)
    broken = without_in(chain_finish.FINISH_NODES, "finished_job", _FENCE, "lease_until > {now}")
    patch.setattr(chain_finish, "FINISH_NODES", broken)


def _checkpoint_without_its_fence(patch: pytest.MonkeyPatch) -> None:
    guards = (_FENCE, "lease_until > {now}")
    patch.setattr(chain_commands, "SAVE_CHECKPOINT", without(chain_commands.SAVE_CHECKPOINT, *guards))


def _dependents_that_wait_for_one_alone(patch: pytest.MonkeyPatch) -> None:
    """A node gets its job with the first of its dependencies."""
    changes = {"waiting_on = ended AND": "waiting_on >= ended AND"}
    patch.setattr(chain_finish, "FINISH_NODES", without_in(chain_finish.FINISH_NODES, "counted_node", **changes))


def _ends_that_are_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """Whatever is counted for dependents is counted again."""
    count_deps = ChainRunAdvancer._count_deps

    async def twice(self: ChainRunAdvancer, *given: Any) -> Any:
        await count_deps(self, *given)
        return await count_deps(self, *given)

    patch.setattr(ChainRunAdvancer, "_count_deps", twice)


def _skips_that_nobody_hears_of(patch: pytest.MonkeyPatch) -> None:
    """A skipped node is not counted for its dependents."""
    skip = ChainRunAdvancer._skip

    async def silent(self: ChainRunAdvancer, *given: Any) -> Any:
        await skip(self, *given)
        return []

    patch.setattr(ChainRunAdvancer, "_skip", silent)


def _capacity_without_limits(patch: pytest.MonkeyPatch) -> None:
    def takes(self: SlotAllocator, dag: Any, request: Any) -> Any:
        return dag.node_for(request.node_id)

    patch.setattr(SlotAllocator, "allocate", takes)
    patch.setattr(SlotAllocator, "free", property(lambda _: UNLIMITED))
    patch.setattr(SlotAllocator, "free_in_run", lambda *_: UNLIMITED)


def _runs_that_take_no_turns(patch: pytest.MonkeyPatch) -> None:
    """Every run of a chain begins, however many are under way."""
    lock_limits = DagCache.lock_limits

    async def unlimited(self: DagCache, *given: Any) -> Any:
        return replace(await lock_limits(self, *given), max_runs=None)

    patch.setattr(DagCache, "lock_limits", unlimited)


def _stop_without_grace(patch: pytest.MonkeyPatch) -> None:
    stoppable = waits.JOBS_TO_CANCEL
    patch.setattr(waits, "JOBS_TO_CANCEL", without(stoppable, "stop_requested_at <= {now} - :grace_us"))


def _stop_that_kills_nobody(patch: pytest.MonkeyPatch) -> None:
    async def kind(_: ChainHousekeeping) -> int:
        return 0

    patch.setattr(ChainHousekeeping, "cancel_stopping_jobs", kind)


def _waits_that_nobody_ends(patch: pytest.MonkeyPatch) -> None:
    """The end of a run wakes nobody, and nobody asks again."""

    async def deaf(*_: Any, **__: Any) -> Any:
        return 0

    async def blind(*_: Any) -> Sequence[Any]:
        return []

    patch.setattr(ChainRunLifecycle, "resume", deaf)
    patch.setattr(ChainRunLifecycle, "finish_satisfied_waits", blind)
    patch.setattr(ChainHousekeeping, "recheck_waits", deaf)


def _retried_maps_that_nobody_joins(patch: pytest.MonkeyPatch) -> None:
    """A stopped mapped node waits, when it is retried, also where every instance has ended."""

    async def never(*_: Any) -> Sequence[Any]:
        return []

    patch.setattr(ChainRunControl, "_join_at_once", never)


def _parts_without_a_key(patch: pytest.MonkeyPatch) -> None:
    """A node that runs another chain starts it anew at every attempt."""
    started = SubchainExecutor._started

    async def anew(self: SubchainExecutor, tx: Any, context: Any, _key: str | None) -> str | None:
        return await started(self, tx, context, None)

    patch.setattr(SubchainExecutor, "_started", anew)


@pytest.mark.slow
@pytest.mark.parametrize(
    "break_guard",
    [
        _finish_without_its_fence,
        _checkpoint_without_its_fence,
        _dependents_that_wait_for_one_alone,
        _ends_that_are_counted_twice,
        _skips_that_nobody_hears_of,
        _capacity_without_limits,
        _runs_that_take_no_turns,
        _stop_without_grace,
        _stop_that_kills_nobody,
        _waits_that_nobody_ends,
        _parts_without_a_key,
        _retried_maps_that_nobody_joins,
    ],
)
def test_the_simulator_notices_a_missing_guard(
    break_guard: BreakGuard, schema: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_guard(monkeypatch)
    assert any(simulate("chains", seed, schema, FaultProbabilities(outcome_unknown=0.1)) for seed in SEEDS)
