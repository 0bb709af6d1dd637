"""Installations for the executor tests: worker, scheduler, sandbox and database in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.chain_fixture import ChainInstallation, open_chain_installation


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of compiled programs, shared by all tests as by all jobs of a worker."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
async def system(sqlite_url: str, tmp_path: Path, compile_cache: Path) -> AsyncIterator[ChainInstallation]:
    """An installation on SQLite."""
    async with open_chain_installation(sqlite_url, tmp_path, compile_cache) as opened:
        yield opened


@pytest.fixture
async def system_on_both(store_url: str, tmp_path: Path, compile_cache: Path) -> AsyncIterator[ChainInstallation]:
    """An installation on each database in turn."""
    async with open_chain_installation(store_url, tmp_path, compile_cache) as opened:
        yield opened
