"""What every hostile case shares: built programs, a host with canaries, and a sandbox in each of its two ways in."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from adjudge.sandbox import Sandbox
from tests.sandbox import programs
from tests.sandbox.case import Box
from tests.sandbox.host import Host, adopt_orphans

WAYS = os.environ.get("ADJUDGE_TEST_WAYS", "agent,command").split(",")
"""The ways in that are tried; an emulated machine may not have the time for both."""
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program_folder() -> Path:
    """The hostile programs, compiled once and kept while their sources stay the same."""
    return programs.ready(REPOSITORY / ".cache")


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    """One host with canaries for the whole session."""
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="adjudge-host-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101  # a str from tempfile
        canaries, state = Path(folder) / "canaries", Path(folder) / "state"
        canaries.mkdir()
        state.mkdir()
        watched = Host(canaries, state)
        yield watched
        watched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=WAYS)
async def box(request: pytest.FixtureRequest, program_folder: Path, host: Host) -> AsyncIterator[Box]:
    """A sandbox of two slots, kept for all cases: the second never notices what the first did."""
    async with Sandbox(slots=2, use_agent=request.param == "agent", state_dir=host.state) as sandbox:
        yield Box(sandbox, program_folder, request.param)


@pytest.fixture
def unharmed(host: Host) -> Iterator[None]:
    """Assert around the test that the host is as before."""
    with host.unharmed():
        yield
