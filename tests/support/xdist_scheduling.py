"""How the suite is spread over processes by pytest-xdist, each with private servers of its own.

Tests of one file run in one process, in order: they share what is dear to set up. So do whole folders that keep one
sandbox or one browser for all their files. A plugin of the root ``conftest``; without ``-n`` it does nothing.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/browser", "tests/sandbox", "tests/conformance/blobs", "tests/conformance/registry")
"""Folders whose files share a session: a browser with its servers; a sandbox, and the same suite as another user; the
only ones who want S3, and etcd."""
MOST = 4
"""More processes would spend more on starting servers than they save."""


class FileScheduling(LoadScopeScheduling):
    """Assigns whole files to a process, and whole folders where files share a session."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = str(PurePosixPath(file).parent)
        return folder if folder in TOGETHER else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process per core, and two at least: tests that wait for a server leave their core to others."""
    return min(MOST, max(2, len(os.sched_getaffinity(0))))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling:
    """Use this scheduler for every value of ``--dist``."""
    return FileScheduling(config, log)
