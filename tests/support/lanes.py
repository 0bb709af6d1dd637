"""How the suite is spread over processes by pytest-xdist, each with private servers of its own.

Tests of one file run in one process, in order: they share what is dear to set up. So do whole folders that keep one
sandbox or one browser for all their files. A plugin of the root ``conftest``; without ``-n`` it does nothing.
"""

from __future__ import annotations

import os

import pytest

TOGETHER = ("tests/browser", "tests/sandbox")
"""Folders whose files share a session: a browser with its servers; a sandbox, and the same suite as another user."""
MOST = 4
"""More processes would spend more on starting servers than they save."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name each test's lane, for ``--dist loadgroup``."""
    for item in items:
        folder = item.path.parent.relative_to(config.rootpath).as_posix()
        lane = folder if folder in TOGETHER else f"{folder}/{item.path.stem}"
        item.add_marker(pytest.mark.xdist_group(lane))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process per core, and two at least: tests that wait for a server leave their core to others."""
    return min(MOST, max(2, len(os.sched_getaffinity(0))))
