"""Coverage-guided fuzzing of the report parser: every input gives a consistent report or a ``ProtocolError``.

Run in an environment with atheris: ``python fuzz/report_fuzzer.py CORPUS -max_total_time=30``.
"""

from __future__ import annotations

import json
import sys

import atheris  # type: ignore[import-untyped]  # it has no stubs

with atheris.instrument_imports(include=["adjudge.sandbox.report"]):
    from adjudge.sandbox.report import ProtocolError, SandboxVerdict, parse_report

from fuzz import seeds

VALUES = [*SandboxVerdict, "Finished", "System Error", "Runtime Error", "cpu", "rlimit", "exec"]


def changed_report(data: bytes) -> bytes:
    """A valid report with some keys removed or changed: always valid JSON, which plain mutation rarely is."""
    source = atheris.FuzzedDataProvider(data)
    body = dict(seeds.REPORT)
    for _ in range(source.ConsumeIntInRange(1, 4)):
        key = source.PickValueInList(sorted(seeds.REPORT))
        integer = source.ConsumeIntInRange(-(2**65), 2**65)
        text = source.ConsumeUnicode(12)
        values = [integer, integer % 4, text, None, True, [], [[integer, 0, 0]] * 2, {}, *VALUES]
        body[key] = source.PickValueInList(values)
        if source.ConsumeBool():
            del body[key]
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def read_one(data: bytes) -> None:
    """Parse one input: a report as it is, or a changed report."""
    read_line(data[1:] if data[:1] < b"\x80" else changed_report(data[1:]))


def read_line(data: bytes) -> None:
    """Parse one line and check that the report is consistent."""
    try:
        report, stdout_bytes, stderr_bytes = parse_report(data, job_id="job", attempt_id=1, collect=("a", "b"))
    except ProtocolError:
        return
    if (report.verdict is SandboxVerdict.SE) != (report.sandbox_error is not None):
        raise AssertionError("verdict SE does not match sandbox_error")
    if report.verdict is SandboxVerdict.OK and (report.exit_code or report.exit_signal):
        raise AssertionError("verdict OK with a non-zero exit code or a signal")
    if min(report.time_ms, report.wall_ms, report.mem_kb, stdout_bytes, stderr_bytes) < 0:
        raise AssertionError("a negative value")


atheris.Setup(sys.argv, read_one)
atheris.Fuzz()
