"""What the pool does where a launcher cannot be believed, dies, or has no cgroup: counted, logged, never a verdict."""

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


class Counted(NullSandboxMetrics):
    """Notes what is counted."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.reasons: list[str] = []

    def protocol_error(self, reason: str) -> None:
        self.errors.append(str(reason))

    def degraded(self, reason: str) -> None:
        self.reasons.append(reason)


class FakeLauncher:
    """Answers each run with the next of its answers, whoever asks."""

    source = MemorySource.CGROUP2
    answers: list[SandboxRunReport | Exception] = []  # noqa: RUF012  # set by each test
    made: list[FakeLauncher] = []  # noqa: RUF012  # as above

    def __init__(self, *_: object, once: bool, **__: object) -> None:
        self.once, self.alive, self.closed = once, True, False
        self.made.append(self)

    async def wait_ready(self) -> Isolation:
        return Isolation(0, 1, False, True, self.source)

    async def run(self, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def detach_capture(self) -> None:
        return None

    async def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def _fake_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeLauncher, "answers", [])
    monkeypatch.setattr(FakeLauncher, "made", [])
    monkeypatch.setattr(FakeLauncher, "source", MemorySource.CGROUP2)
    monkeypatch.setattr(pool, "Launcher", FakeLauncher)


@pytest.fixture
def log() -> Iterator[StringIO]:
    with capture_logs() as lines:
        yield lines


def fine(source: MemorySource = MemorySource.CGROUP2) -> SandboxRunReport:
    report = fault_report(SandboxFault("none", 0, -1, ""), SPEC.job_id, SPEC.attempt_id)
    return report._replace(verdict=SandboxVerdict.OK, sandbox_error=None, memory_source=source)


def lines_of(log: StringIO, event: str) -> list[dict[str, Any]]:
    return [line for text in log.getvalue().splitlines() if (line := json.loads(text)).get("event") == event]


async def test_a_report_that_breaks_the_protocol_is_counted_logged_and_is_nobodys_verdict(
    log: StringIO, tmp_path: Path
) -> None:
    metrics = Counted()
    FakeLauncher.answers += [ProtocolError(ProtocolReason.JOB_MISMATCH, "another job's"), fine(), fine()]
    async with Sandbox(slots=1, metrics=metrics, state_dir=tmp_path) as box:
        report = await box.run(SPEC)
        assert report.verdict is SandboxVerdict.SE
        assert report.sandbox_error is not None
        assert report.sandbox_error.step == "report"
        assert (report.job_id, report.attempt_id) == ("job-1", 2)
        assert metrics.errors == [str(ProtocolReason.JOB_MISMATCH)]
        assert FakeLauncher.made[0].closed, "an agent that was not believed once is not asked again"
        assert (await box.run(SPEC)).verdict is SandboxVerdict.OK
    (line,) = lines_of(log, "sandbox_protocol_error")
    assert (line["reason"], line["job_id"], line["attempt_id"]) == (str(ProtocolReason.JOB_MISMATCH), "job-1", 2)


async def test_a_fall_back_to_the_command_is_logged_once_and_so_is_the_way_back(
    log: StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Counted()
    FakeLauncher.answers += [LauncherDied("it ended"), fine(), fine(), fine()]
    async with Sandbox(slots=1, metrics=metrics, state_dir=tmp_path) as box:
        assert (await box.run(SPEC)).degraded
        assert (await box.run(SPEC)).degraded
        assert box.is_degraded
        monkeypatch.setattr(pool, "AGENT_RETRY_SEC", 0.0)
        for slot in box._all:
            slot.retry_at = 0.0
        assert not (await box.run(SPEC)).degraded
    assert metrics.reasons == ["agent_died", "no_agent"]
    (line,) = lines_of(log, "sandbox_degraded")
    assert (line["reason"], line["error"]) == ("agent_died", "it ended")
    assert len(lines_of(log, "sandbox_agent_restored")) == 1


async def test_without_a_cgroup_nothing_runs_unless_it_is_allowed(tmp_path: Path) -> None:
    FakeLauncher.source = MemorySource.RLIMIT
    FakeLauncher.answers += [fine(MemorySource.RLIMIT)]
    for use_agent in (True, False):
        with pytest.raises(NoCgroup, match="ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true"):
            await Sandbox(slots=1, use_agent=use_agent, state_dir=tmp_path).__aenter__()
    assert all(launcher.closed for launcher in FakeLauncher.made)
    async with Sandbox(slots=1, unsafe=True, state_dir=tmp_path) as box:
        assert (await box.run(SPEC)).verdict is SandboxVerdict.OK


async def test_a_cgroup_that_goes_away_makes_runs_our_fault(tmp_path: Path) -> None:
    FakeLauncher.answers += [fine(MemorySource.RLIMIT)]
    async with Sandbox(slots=1, state_dir=tmp_path) as box:
        report = await box.run(SPEC)
    assert report.verdict is SandboxVerdict.SE
    assert report.sandbox_error is not None
    assert report.sandbox_error.step == "cgroup"
