"""Scenarios with injected faults for every kind of work; the same seed gives the same trace."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.scenario import Scenario
from tests.simulation.simulate import KINDS, simulate

ROOT = Path(__file__).resolve().parents[2]
BATCHES = 10
SEEDS_A_BATCH = {"judge": 20, "chains": 12}
"""A chain scenario takes longer."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "batch", [pytest.param(batch, marks=pytest.mark.slow if batch else ()) for batch in range(BATCHES)]
)
def test_all_comes_to_a_good_end_whatever_fails(batch: int, kind: str, schema: sqlite3.Connection) -> None:
    number = SEEDS_A_BATCH[kind]
    seeds = range(1 + batch * number, 1 + (batch + 1) * number)
    failures = {seed: found for seed in seeds if (found := simulate(kind, seed, schema))}
    assert failures == {}, f"play one again with: make simulate SEEDS={kind}:<seed>"


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_gives_the_same_trace(kind: str, schema: sqlite3.Connection) -> None:
    def trace(seed: int) -> list[str]:
        seen: list[str] = []

        def witness(scenario: Scenario) -> None:
            seen.extend(scenario.trace())

        simulate(kind, seed, schema, witness=witness)
        return seen

    assert trace(7) == trace(7)
    assert trace(7) != trace(8)


@pytest.mark.slow
def test_trace_is_the_same_in_another_process() -> None:
    """Sets of names come in another order there: a failure must be there to be played again all the same."""

    def trace_of(hash_seed: str) -> str:
        argv = [sys.executable, "-m", "tests.simulation", "chains:7"]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        return subprocess.run(argv, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    trace = trace_of("1")
    assert trace == trace_of("2")
    assert trace.endswith("1 passed, 0 failed\n")
