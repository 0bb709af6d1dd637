"""Any history of a contest keeps the stored scoreboard equal to its recomputation, on both databases."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from adjudge.store.engine.statement import Dialect
from tests.integration.contests.scoreboard_machine import ScoreboardMachine
from tests.support.store_harness import open_store

BOUNDED = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_scoreboard_equals_its_recomputation_after_every_step(store_url: str) -> None:
    with asyncio.Runner() as runner:
        context = open_store(store_url)
        store = runner.run(context.__aenter__())
        bounds = BOUNDED if store.dialect is Dialect.SQLITE else settings(BOUNDED, max_examples=8)
        try:
            machine = lambda: ScoreboardMachine(store, runner)  # noqa: E731
            run_state_machine_as_test(machine, settings=bounds)  # type: ignore[arg-type]  # any factory will do
        finally:
            runner.run(context.__aexit__(None, None, None))
