"""Runs the tests in another order: ``--random-order-seed 7``. A test that needs an earlier one fails then.

Files are shuffled, and the tests within each file; a file's tests stay together, for they share what is dear to set up.
The seed is all that the order depends on, so that every process of pytest-xdist has the same one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        "--random-order-seed", type=int, default=None, metavar="SEED", help="run tests in the order of this seed"
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Tell how to have the same order again."""
    seed = config.getoption("random_order_seed")
    return [] if seed is None else [f"random order: --random-order-seed {seed}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle, if a seed is given."""
    seed = config.getoption("random_order_seed")
    if seed is not None:
        by_id = {item.nodeid: item for item in items}
        items[:] = [by_id[nodeid] for nodeid in shuffled(by_id, seed)]


def shuffled(nodeids: Iterable[str], seed: int) -> list[str]:
    """The tests in the order of a seed, file by file."""
    chance, files = random.Random(seed), dict[str, list[str]]()
    for nodeid in nodeids:
        files.setdefault(nodeid.partition("::")[0], []).append(nodeid)
    order = list(files)
    chance.shuffle(order)
    for name in order:
        chance.shuffle(files[name])
    return [nodeid for name in order for nodeid in files[name]]
