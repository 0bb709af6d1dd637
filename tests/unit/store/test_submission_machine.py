"""Any order of verdicts, cancels, changes by hand, replays and rejudges keeps submissions right, on both databases."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.store_harness import open_store
from tests.unit.store.submission_machine import SubmissionMachine

BOUNDED = settings(
    max_examples=50,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_submissions_follow_legal_edges_in_any_order_of_events(store_url: str) -> None:
    with asyncio.Runner() as runner:
        context = open_store(store_url)
        store = runner.run(context.__aenter__())
        try:
            machine = lambda: SubmissionMachine(store, runner)  # noqa: E731
            run_state_machine_as_test(machine, settings=BOUNDED)  # type: ignore[arg-type]  # any factory will do
        finally:
            runner.run(context.__aexit__(None, None, None))
