"""The chain benchmark: its shapes are DAGs, and the progress of its processes matches the rows."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from adjudge.domain.chain_parser import parse_dag
from bench import chains
from bench.chains_progress import FAN, FIRST, LATTICE, LINE, WIDTH, document, edges
from bench.harness import Bench
from bench.queue import create_sqlite
from bench.queue_systems import SystemSpec


@pytest.mark.parametrize("shape", [LINE, FAN, LATTICE])
def test_every_shape_is_a_dag_with_one_root(shape: str) -> None:
    dag = parse_dag(document(shape, 2 * WIDTH + 3))
    assert len(dag.nodes) == 2 * WIDTH + 3
    assert [node.id for node in dag.nodes if not node.deps] == [FIRST]


def test_shapes_are_what_they_are_called() -> None:
    assert edges(LINE, 3) == [(), (0,), (1,)]
    assert edges(FAN, 5) == [(), (0,), (0,), (0,), (1, 2, 3)]
    lattice = edges(LATTICE, 1 + 2 * WIDTH)
    assert lattice[1 : WIDTH + 1] == [(0,)] * WIDTH
    assert (lattice[WIDTH + 1], lattice[2 * WIDTH]) == ((1, 2), (WIDTH, 1))


def runner(name: str, module: str, role: str, url: str, folder: Path, stack: ExitStack) -> chains.ChainSystem:
    found = chains.ChainSystem(SystemSpec(name, sys.executable, module, (role,), (url,)), folder, stack)
    found.wait_ready()
    return found


@pytest.mark.slow
def test_adjudge_finishes_every_shape(tmp_path: Path) -> None:
    url = create_sqlite(tmp_path, "ours")
    with ExitStack() as stack:
        ours = runner("ours", "bench.chains_adjudge", "embedded", url, tmp_path, stack)
        assert all(ours.run(shape, 5) > 0 for shape in (LINE, FAN, LATTICE))
        assert len(ours.start_ms(2)) == 2
    with sqlite3.connect(tmp_path / "ours.db") as database:
        ends = database.execute("SELECT status, nodes_total FROM chain_runs ORDER BY created_at").fetchall()
        nodes = database.execute("SELECT DISTINCT status FROM chain_nodes").fetchall()
    database.close()
    assert ends == [("success", 5)] * 3 + [("success", 1)] * 2
    assert nodes == [("success",)]


@pytest.mark.slow
def test_baseline_claims_and_finishes_each_step(tmp_path: Path) -> None:
    url = create_sqlite(tmp_path, "raw")
    with ExitStack() as stack:
        assert runner("raw", "bench.chains_baseline", "submitter", url, tmp_path, stack).rate(4) > 0
    with sqlite3.connect(tmp_path / "raw.db") as database:
        rows = database.execute("SELECT status, attempt_id FROM jobs").fetchall()
    database.close()
    assert rows == [("succeeded", 1)] * (4 + chains.WARM)


def test_missing_peer_has_a_row_with_the_reason() -> None:
    class Quick(chains.ChainSystem):
        def __init__(self) -> None: ...

        def rate(self, size: int, shape: str = LINE) -> float:
            return float(size)

    bench = Bench("chains")
    everybody = {name: Quick() for name in (*chains.FLOORS, *chains.FLOORS.values(), "DBOS")}
    chains.add_lines(bench, everybody, {"Prefect": "no server"})
    chains.add_fans(bench, everybody, {"Prefect": "no server"})
    said = [row.against for row in bench.rows if row.value is None]
    assert said == ["not measured: Prefect: no server"] * 2
    assert {row.goal for row in bench.rows} == {">= 1.9", ">= 8", None}
