"""Any order of claims, losses, late writes, cancels and replays keeps the promises, on both databases."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.store_harness import open_store
from tests.unit.store.jobs.job_state_machine import JobStateMachine

BOUNDED = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def run_machine(store_url: str, bounds: settings) -> None:
    with asyncio.Runner() as runner:
        context = open_store(store_url)
        store = runner.run(context.__aenter__())
        try:
            run_state_machine_as_test(lambda: JobStateMachine(store, runner), settings=bounds)  # type: ignore[arg-type]  # any factory will do
        finally:
            runner.run(context.__aexit__(None, None, None))


def test_no_order_of_events_breaks_a_promise(store_url: str) -> None:
    run_machine(store_url, BOUNDED)


@pytest.mark.slow
def test_no_long_order_of_events_breaks_a_promise(store_url: str) -> None:
    run_machine(store_url, settings(BOUNDED, max_examples=120, stateful_step_count=50))
