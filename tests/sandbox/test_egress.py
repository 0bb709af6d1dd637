"""Network egress: only listed hosts and ports are reachable."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adjudge.sandbox import Egress, SandboxRunSpec, launcher
from adjudge.sandbox.launcher import Launcher
from tests.sandbox.host_state import HostState
from tests.sandbox.sandbox_case import SandboxCase

REPOSITORY = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("unchanged_host")


def test_only_listed_host_is_reachable(host: HostState) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.egress_namespace", str(host.state / "egress")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"] == "OK", result
    assert result["reached"] == {
        "listed host and port": "hello from allowed",
        "second connection": "hello from allowed",
        "other port": "ConnectionRefusedError",
        "other host by name": "gaierror",
        "other host by address": "ConnectionRefusedError",
        "real address of listed host": "ConnectionRefusedError",
        "address without route": "OSError",
        "UDP": "OSError",
        "IPv6": "OSError",
    }
    assert result["connections"] == {"allowed": 2, "other port": 0, "other host": 0}


@pytest.mark.asyncio(loop_scope="session")
async def test_report_arrives_if_program_ends_before_proxy_starts(
    sandbox_case: SandboxCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, reported, receive = [], asyncio.Event(), Launcher._receive

    def record(self: Launcher) -> bytes:
        lines.append(receive(self))
        if len(lines) == 3:  # hello, listeners, report
            reported.set()
        return lines[-1]

    @asynccontextmanager
    async def start_late(*_: object) -> AsyncIterator[None]:
        await reported.wait()
        yield

    monkeypatch.setattr(Launcher, "_receive", record)
    monkeypatch.setattr(launcher, "forward_egress", start_late)
    async with asyncio.timeout(120):
        report = await sandbox_case.sandbox.run(SandboxRunSpec(argv=("/bin/true",), egress=(Egress("localhost", 9),)))
    assert report.ok, report
