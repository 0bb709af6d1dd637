"""The one way out of a box, if asked for: what is listed is reached, nothing else."""

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
        "the allowed host and port": "hello from allowed",
        "once more": "hello from allowed",
        "another port": "ConnectionRefusedError",
        "another host by name": "gaierror",
        "another host by address": "ConnectionRefusedError",
        "the real address": "ConnectionRefusedError",
        "an address without a route": "OSError",
        "datagrams": "OSError",
        "the newer protocol": "OSError",
    }
    assert result["heard"] == {"allowed": 2, "other port": 0, "other host": 0}


@pytest.mark.asyncio(loop_scope="session")
async def test_report_arrives_if_program_ends_before_proxy_starts(
    sandbox_case: SandboxCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, reported, receive = [], asyncio.Event(), Launcher._receive

    def noted(self: Launcher) -> bytes:
        lines.append(receive(self))
        if len(lines) == 3:  # the hello, the listeners, the report
            reported.set()
        return lines[-1]

    @asynccontextmanager
    async def slowly(*_: object) -> AsyncIterator[None]:
        await reported.wait()
        yield

    monkeypatch.setattr(Launcher, "_receive", noted)
    monkeypatch.setattr(launcher, "forward_egress", slowly)
    async with asyncio.timeout(120):
        report = await sandbox_case.sandbox.run(SandboxRunSpec(argv=("/bin/true",), egress=(Egress("localhost", 9),)))
    assert report.ok, report
