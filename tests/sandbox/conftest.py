"""What every hostile case shares: built programs, a host with canaries, and a sandbox in each of its two ways in."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from adjudge.sandbox import Sandbox
from tests.sandbox import programs, unprivileged_user
from tests.sandbox.host_state import APART, Host, adopt_orphans
from tests.sandbox.sandbox_case import Box

WAYS = os.environ.get("ADJUDGE_TEST_WAYS", "agent,command").split(",")
"""The ways in that are tried; an emulated machine may not have the time for both."""
# The second leg, an ordinary user's, may have no cgroup, and trusts the programs of the tests.
os.environ.setdefault("ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP", "true")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program_folder() -> Path:
    """The hostile programs, compiled once and kept while their sources stay the same."""
    return programs.ready(REPOSITORY / ".cache")


def _is_leg(item: pytest.Item) -> bool:
    return item.path.name == "test_unprivileged_user.py"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask for the other leg's outcome last: it runs beside the tests of this folder."""
    ours = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    if ours:
        last = [item for item in ours if not _is_leg(item)] + [item for item in ours if _is_leg(item)]
        places = [index for index, item in enumerate(items) if item in ours]
        for index, item in zip(places, last, strict=True):
            items[index] = item


@dataclass(frozen=True, slots=True)
class Leg:
    """The whole suite as an ordinary user, under way in a process of its own."""

    process: subprocess.Popen[bytes]
    output: Path


@pytest.fixture(scope="session")
def ordinary_leg(request: pytest.FixtureRequest, program_folder: Path) -> Iterator[Leg | None]:
    """Started with the first test of this folder, if its outcome will be asked for; None where we are no root."""
    if os.getuid() != 0 or not any(_is_leg(item) for item in request.session.items):
        yield None
        return
    options = ["--confcutdir=tests/sandbox", "-q", "-p", "no:cacheprovider", "--color=no", "-rfE"]
    argv = [sys.executable, "-m", "pytest", "tests/sandbox", *options]
    environment = {"ADJUDGE_TEST_PROGRAMS": str(program_folder), "CI": os.environ.get("CI", "")}
    with (
        tempfile.NamedTemporaryFile(prefix="adjudge-leg-") as output,
        unprivileged_user.running(argv, REPOSITORY, environment, output.file, needed=(program_folder,)) as process,
    ):
        APART.add(process.pid)
        yield Leg(process, Path(output.name))


@pytest.fixture(scope="session")
def host(ordinary_leg: Leg | None) -> Iterator[Host]:  # which starts before there are threads
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
    async with Sandbox(unsafe=True, slots=2, use_agent=request.param == "agent", state_dir=host.state) as sandbox:
        yield Box(sandbox, program_folder, request.param)


@pytest.fixture
def unharmed(host: Host) -> Iterator[None]:
    """Assert around the test that the host is as before."""
    with host.unharmed():
        yield
