"""The report parser accepts exactly the protocol."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from adjudge.sandbox import LimitKind, MemorySource, ProtocolError, ProtocolReason, SandboxVerdict, parse_report
from adjudge.sandbox.report import REPORT_BYTES_MAX, REPORT_KEYS

ROOT = Path(__file__).parents[3]
GOOD: dict[str, Any] = {
    "schema_version": 1, "job_id": "job_123", "attempt_id": 7, "verdict": "OK", "time_ms": 12, "mem_kb": 2048,
    "exit_signal": 0, "sandbox_error": "", "status": "Finished", "time_used": 12, "memory_used": 2048, "exit_code": 0,
    "error": "", "error_step": "", "error_errno": 0, "error_index": -1, "time_us": 12_345, "wall_ms": 20,
    "wall_us": 20_111, "ended_ns": 5, "limit": "", "memory_source": "cgroup2", "processes_refused": False,
    "output_bytes": 9, "stdout_bytes": 4, "stderr_bytes": 5, "stdout_truncated": False, "stderr_truncated": True,
    "collected": [],
}  # fmt: skip


def line(**changes: object) -> bytes:
    return json.dumps(GOOD | changes).encode()


def protocol_error_reason(body: bytes) -> ProtocolReason:
    with pytest.raises(ProtocolError) as caught:
        parse_report(body, job_id="job_123", attempt_id=7)
    return caught.value.reason


def test_valid_report_is_parsed() -> None:
    report, stdout_bytes, stderr_bytes = parse_report(line(), job_id="job_123", attempt_id=7)
    assert (report.verdict, report.time_ms, report.mem_kb, report.wall_ms) == (SandboxVerdict.OK, 12, 2048, 20)
    assert (stdout_bytes, stderr_bytes, report.stderr_truncated) == (4, 5, True)
    assert report.memory_source is MemorySource.CGROUP2
    assert report.ok


def test_system_error_has_step_errno_and_index() -> None:
    changes = {"verdict": "SE", "status": "System Error", "sandbox_error": "mount:ENOENT", "exit_code": -1}
    details = {"error": "No such file", "error_step": "mount", "error_errno": 2, "error_index": 3}
    report, _, _ = parse_report(line(**changes, **details), job_id="job_123", attempt_id=7)
    assert report.sandbox_error is not None
    assert (report.sandbox_error.step, report.sandbox_error.errno, report.sandbox_error.index) == ("mount", 2, 3)
    assert str(report.sandbox_error) == "mount[3]: No such file"


def test_limit_is_parsed() -> None:
    body = line(verdict="TLE", status="Time Limit Exceeded", limit="wall", exit_code=-1, exit_signal=9)
    assert parse_report(body, job_id="job_123", attempt_id=7)[0].limit is LimitKind.WALL


def test_collected_files_are_in_requested_order() -> None:
    body = line(collected=[[1, 10, 0], [0, 0, 2]])
    report, _, _ = parse_report(body, job_id="job_123", attempt_id=7, collect=("a", "b"))
    assert [(entry.name, entry.files, entry.error) for entry in report.collected] == [("a", 1, ""), ("b", 0, "ENOENT")]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", ProtocolReason.EMPTY),
        (b"x" * (REPORT_BYTES_MAX + 1), ProtocolReason.TOO_LARGE),
        (b"{", ProtocolReason.INVALID_JSON),
        (b"\xff\xfe", ProtocolReason.INVALID_JSON),
        (b"[" * 30_000, ProtocolReason.INVALID_JSON),
        (b"[]", ProtocolReason.NOT_AN_OBJECT),
        (line(schema_version=2), ProtocolReason.SCHEMA_VERSION),
        (line(schema_version=True), ProtocolReason.SCHEMA_VERSION),
        (line(time_ms="12"), ProtocolReason.WRONG_TYPE),
        (line(time_ms=1.5), ProtocolReason.WRONG_TYPE),
        (line(stdout_truncated=0), ProtocolReason.WRONG_TYPE),
        (line(collected={}), ProtocolReason.WRONG_TYPE),
        (line(collected=[[1, 1, 0]]), ProtocolReason.WRONG_TYPE),
        (line(mem_kb=-1), ProtocolReason.OUT_OF_RANGE),
        (line(mem_kb=2**63), ProtocolReason.OUT_OF_RANGE),
        (line(verdict="AC"), ProtocolReason.UNKNOWN_VALUE),
        (line(limit="patience"), ProtocolReason.UNKNOWN_VALUE),
        (line(memory_source="guess"), ProtocolReason.UNKNOWN_VALUE),
        (line(job_id="other"), ProtocolReason.JOB_MISMATCH),
        (line(attempt_id=6), ProtocolReason.ATTEMPT_MISMATCH),
        (line(sandbox_error="exec:ENOENT"), ProtocolReason.CONTRADICTION),
        (line(verdict="SE", status="System Error"), ProtocolReason.CONTRADICTION),
        (line(exit_code=1), ProtocolReason.CONTRADICTION),
        (line(exit_signal=9), ProtocolReason.CONTRADICTION),
        (line(status="Runtime Error"), ProtocolReason.CONTRADICTION),
        (line(time_used=13), ProtocolReason.CONTRADICTION),
    ],
)
def test_invalid_report_is_rejected_with_reason(body: bytes, reason: ProtocolReason) -> None:
    assert protocol_error_reason(body) is reason


@pytest.mark.parametrize("key", sorted(REPORT_KEYS))
def test_every_key_is_required(key: str) -> None:
    body = {name: value for name, value in GOOD.items() if name != key}
    assert protocol_error_reason(json.dumps(body).encode()) is ProtocolReason.MISSING_KEY


def test_unknown_key_is_ignored() -> None:
    assert parse_report(line(more="later"), job_id="job_123", attempt_id=7)[0].ok


def test_every_key_is_written_by_launcher_and_documented() -> None:
    source = (ROOT / "launcher" / "report.c").read_text()
    writer = source[: source.index("size_t report_hello(")]
    written = set(re.findall(r'\\"(\w+)\\":', writer))
    reference = (ROOT / "docs" / "reference" / "launcher.md").read_text()
    documented = set(re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE))
    assert written == REPORT_KEYS
    assert documented >= REPORT_KEYS
