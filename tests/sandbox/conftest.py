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
from tests.sandbox.host_state import EXCLUDED_CHILDREN, HostState, become_subreaper
from tests.sandbox.sandbox_case import SandboxCase

MODES = os.environ.get("ADJUDGE_TEST_MODES", "agent,command").split(",")
"""The ways in that are tried; an emulated machine may not have the time for both."""
# The second leg, an ordinary user's, may have no cgroup, and trusts the programs of the tests.
os.environ.setdefault("ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP", "true")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program_folder() -> Path:
    """The hostile programs, compiled once and kept while their sources stay the same."""
    return programs.ready(REPOSITORY / ".cache")


def _is_unprivileged_run(item: pytest.Item) -> bool:
    return item.path.name == "test_unprivileged_user.py"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask for the other leg's outcome last: it runs beside the tests of this folder."""
    ours = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    if ours:
        last = [item for item in ours if not _is_unprivileged_run(item)] + [
            item for item in ours if _is_unprivileged_run(item)
        ]
        places = [index for index, item in enumerate(items) if item in ours]
        for index, item in zip(places, last, strict=True):
            items[index] = item


@dataclass(frozen=True, slots=True)
class UnprivilegedRun:
    """The whole suite as an ordinary user, under way in a process of its own."""

    process: subprocess.Popen[bytes]
    output: Path


@pytest.fixture(scope="session")
def unprivileged_run(request: pytest.FixtureRequest, program_folder: Path) -> Iterator[UnprivilegedRun | None]:
    """Started with the first test of this folder, if its outcome will be asked for; None where we are no root."""
    if os.getuid() != 0 or not any(_is_unprivileged_run(item) for item in request.session.items):
        yield None
        return
    options = ["--confcutdir=tests/sandbox", "-q", "-p", "no:cacheprovider", "--color=no", "-rfE"]
    argv = [sys.executable, "-m", "pytest", "tests/sandbox", *options]
    environment = {"ADJUDGE_TEST_PROGRAMS": str(program_folder), "CI": os.environ.get("CI", "")}
    with (
        tempfile.NamedTemporaryFile(prefix="adjudge-unprivileged-") as output,
        unprivileged_user.running(argv, REPOSITORY, environment, output.file, needed=(program_folder,)) as process,
    ):
        EXCLUDED_CHILDREN.add(process.pid)
        yield UnprivilegedRun(process, Path(output.name))


@pytest.fixture(scope="session")
def host(unprivileged_run: UnprivilegedRun | None) -> Iterator[HostState]:  # which starts before there are threads
    """One host with canaries for the whole session."""
    become_subreaper()
    with tempfile.TemporaryDirectory(prefix="adjudge-host-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101  # a str from tempfile
        canaries, state = Path(folder) / "canaries", Path(folder) / "state"
        canaries.mkdir()
        state.mkdir()
        watched = HostState(canaries, state)
        yield watched
        watched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=MODES)
async def sandbox_case(
    request: pytest.FixtureRequest, program_folder: Path, host: HostState
) -> AsyncIterator[SandboxCase]:
    """A sandbox of two slots, kept for all cases: the second never notices what the first did."""
    async with Sandbox(unsafe=True, slots=2, use_agent=request.param == "agent", state_dir=host.state) as sandbox:
        yield SandboxCase(sandbox, program_folder, request.param)


@pytest.fixture
def unchanged_host(host: HostState) -> Iterator[None]:
    """Assert around the test that the host is as before."""
    with host.assert_unchanged():
        yield
