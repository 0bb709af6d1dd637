"""Invalid reports, dead launchers and missing cgroups are counted and logged, and never become a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from adjudge.sandbox import (
    Isolation,
    MemorySource,
    NoCgroup,
    Sandbox,
    SandboxRunReport,
    SandboxRunSpec,
    SandboxVerdict,
    pool,
)
from adjudge.sandbox.launcher import LauncherDied
from adjudge.sandbox.metrics import NullSandboxMetrics
from adjudge.sandbox.report import ProtocolError, ProtocolReason, SandboxFault, fault_report
from tests.support.log_capture import capture_logs

SPEC = SandboxRunSpec(argv=("/bin/true",), job_id="job-1", attempt_id=2)


class RecordedMetrics(NullSandboxMetrics):
    """Records protocol errors and degradations."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.reasons: list[str] = []

    def protocol_error(self, reason: str) -> None:
        self.errors.append(str(reason))

    def degraded(self, reason: str) -> None:
        self.reasons.append(reason)


class FakeLauncher:
    """Replies to each run with the next of ``replies``, for all instances."""

    source = MemorySource.CGROUP2
    replies: list[SandboxRunReport | Exception] = []  # noqa: RUF012  # set by each test
    instances: list[FakeLauncher] = []  # noqa: RUF012  # as above

    def __init__(self, *_: object, once: bool, **__: object) -> None:
        self.once, self.alive, self.closed = once, True, False
        self.instances.append(self)

    async def wait_ready(self) -> Isolation:
        return Isolation(0, 1, False, True, self.source)

    async def run(self, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def detach_capture(self) -> None:
        return None

    async def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _fake_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeLauncher, "replies", [])
    monkeypatch.setattr(FakeLauncher, "instances", [])
    monkeypatch.setattr(FakeLauncher, "source", MemorySource.CGROUP2)
    monkeypatch.setattr(pool, "Launcher", FakeLauncher)


@pytest.fixture
def log() -> Iterator[StringIO]:
    with capture_logs() as lines:
        yield lines


def ok_report(source: MemorySource = MemorySource.CGROUP2) -> SandboxRunReport:
    report = fault_report(SandboxFault("none", 0, -1, ""), SPEC.job_id, SPEC.attempt_id)
    return report._replace(verdict=SandboxVerdict.OK, sandbox_error=None, memory_source=source)


def lines_of(log: StringIO, event: str) -> list[dict[str, Any]]:
    return [line for text in log.getvalue().splitlines() if (line := json.loads(text)).get("event") == event]


async def test_invalid_report_is_counted_logged_and_system_error(log: StringIO, tmp_path: Path) -> None:
    metrics = RecordedMetrics()
    FakeLauncher.replies += [ProtocolError(ProtocolReason.JOB_MISMATCH, "other job"), ok_report(), ok_report()]
    async with Sandbox(slots=1, metrics=metrics, state_dir=tmp_path) as sandbox:
        report = await sandbox.run(SPEC)
        assert report.verdict is SandboxVerdict.SE
        assert report.sandbox_error is not None
        assert report.sandbox_error.step == "report"
        assert (report.job_id, report.attempt_id) == ("job-1", 2)
        assert metrics.errors == [str(ProtocolReason.JOB_MISMATCH)]
        assert FakeLauncher.instances[0].closed, "an agent that sent an invalid report is not used again"
        assert (await sandbox.run(SPEC)).verdict is SandboxVerdict.OK
    (line,) = lines_of(log, "sandbox_protocol_violated")
    assert (line["reason"], line["job_id"], line["attempt_id"]) == (str(ProtocolReason.JOB_MISMATCH), "job-1", 2)


async def test_fallback_and_recovery_are_logged_once(
    log: StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = RecordedMetrics()
    FakeLauncher.replies += [LauncherDied("it ended"), ok_report(), ok_report(), ok_report()]
    async with Sandbox(slots=1, metrics=metrics, state_dir=tmp_path) as sandbox:
        assert (await sandbox.run(SPEC)).degraded
        assert (await sandbox.run(SPEC)).degraded
        assert sandbox.is_degraded
        monkeypatch.setattr(pool, "AGENT_RETRY_SEC", 0.0)
        for slot in sandbox._all:
            slot.retry_at = 0.0
        assert not (await sandbox.run(SPEC)).degraded
    assert metrics.reasons == ["agent_died", "no_agent"]
    (line,) = lines_of(log, "sandbox_degraded")
    assert (line["reason"], line["error"]) == ("agent_died", "it ended")
    assert len(lines_of(log, "sandbox_agent_restored")) == 1


async def test_sandbox_without_cgroup_requires_unsafe(tmp_path: Path) -> None:
    FakeLauncher.source = MemorySource.RLIMIT
    FakeLauncher.replies += [ok_report(MemorySource.RLIMIT)]
    for use_agent in (True, False):
        with pytest.raises(NoCgroup, match="ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true"):
            await Sandbox(slots=1, use_agent=use_agent, state_dir=tmp_path).__aenter__()
    assert all(launcher.closed for launcher in FakeLauncher.instances)
    async with Sandbox(slots=1, unsafe=True, state_dir=tmp_path) as sandbox:
        assert (await sandbox.run(SPEC)).verdict is SandboxVerdict.OK


async def test_lost_cgroup_is_system_error(tmp_path: Path) -> None:
    FakeLauncher.replies += [ok_report(MemorySource.RLIMIT)]
    async with Sandbox(slots=1, state_dir=tmp_path) as sandbox:
        report = await sandbox.run(SPEC)
    assert report.verdict is SandboxVerdict.SE
    assert report.sandbox_error is not None
    assert report.sandbox_error.step == "cgroup"
