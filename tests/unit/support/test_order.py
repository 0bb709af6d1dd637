"""The order of a seed: every test once, files together, the same for everybody."""

from __future__ import annotations

from itertools import pairwise

from tests.support.order import shuffled

NODES = [f"tests/{file}.py::test_{number}[{case}]" for file in "abcdef" for number in range(5) for case in "xy"]


def test_every_test_runs_once_and_files_stay_together() -> None:
    order = shuffled(NODES, 7)
    assert order != NODES
    assert sorted(order) == sorted(NODES)
    files = [nodeid.partition("::")[0] for nodeid in order]
    changes = sum(left != right for left, right in pairwise(files))
    assert changes == 5


def test_seed_gives_one_order_in_all_processes() -> None:
    assert shuffled(NODES, 7) == shuffled(NODES, 7)
    assert shuffled(NODES, 7) != shuffled(NODES, 8)
