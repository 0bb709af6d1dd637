"""The empty database that every scenario starts with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from tests.simulation.simulate import quiet, template


@pytest.fixture(scope="module")
def schema() -> Iterator[sqlite3.Connection]:
    with quiet():
        yield template()
