"""Shared fixtures: compiled programs, the state of the host, and a sandbox in agent mode and in command mode."""

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
"""Launcher modes to test; on an emulated machine both may take too long."""
# The run as an unprivileged user may have no cgroup.
os.environ.setdefault("ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP", "true")
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program_folder() -> Path:
    """Directory of the compiled test programs, cached by a digest of their sources."""
    return programs.ready(REPOSITORY / ".cache")


def _is_unprivileged_run(item: pytest.Item) -> bool:
    return item.path.name == "test_unprivileged_user.py"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the test that waits for the unprivileged run to the end: that run is concurrent with the other tests."""
    ours = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    if ours:
        positions = [index for index, item in enumerate(items) if item in ours]
        for index, item in zip(positions, sorted(ours, key=_is_unprivileged_run), strict=True):
            items[index] = item


@dataclass(frozen=True, slots=True)
class UnprivilegedRun:
    """The whole suite as an unprivileged user, running in another process."""

    process: subprocess.Popen[bytes]
    output: Path


@pytest.fixture(scope="session")
def unprivileged_run(request: pytest.FixtureRequest, program_folder: Path) -> Iterator[UnprivilegedRun | None]:
    """Start the suite as an unprivileged user if the test that checks it is selected; None if we are not root."""
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
def host(unprivileged_run: UnprivilegedRun | None) -> Iterator[HostState]:  # forks before threads start
    """The host with its canaries, for the whole session."""
    become_subreaper()
    with tempfile.TemporaryDirectory(prefix="adjudge-host-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101  # a str from tempfile
        canaries, state = Path(folder) / "canaries", Path(folder) / "state"
        canaries.mkdir()
        state.mkdir()
        host_state = HostState(canaries, state)
        yield host_state
        host_state.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=MODES)
async def sandbox_case(
    request: pytest.FixtureRequest, program_folder: Path, host: HostState
) -> AsyncIterator[SandboxCase]:
    """A sandbox with two slots for all tests: a run must not affect later ones."""
    async with Sandbox(unsafe=True, slots=2, use_agent=request.param == "agent", state_dir=host.state) as sandbox:
        yield SandboxCase(sandbox, program_folder, request.param)


@pytest.fixture
def unchanged_host(host: HostState) -> Iterator[None]:
    """Assert that the test leaves the host unchanged."""
    with host.assert_unchanged():
        yield
