"""The report of a sandbox run: one line of JSON from the launcher, parsed with full validation.

The line follows version 1 of the judge protocol; ``docs/reference/launcher.md`` describes every key. A line that
violates the protocol becomes a ``ProtocolError`` with a reason, never a verdict.
"""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from adjudge.domain.errors import InternalFault

SCHEMA_VERSION: Final = 1
REPORT_BYTES_MAX: Final = 64 * 1024
E = TypeVar("E", bound=StrEnum)


class SandboxVerdict(StrEnum):
    """How a run ended. Whether its output is correct is decided by checkers."""

    OK = "OK"
    TLE = "TLE"
    MLE = "MLE"
    OLE = "OLE"
    RE = "RE"
    SE = "SE"


class LimitKind(StrEnum):
    """The limit that ended a run or was hit."""

    CPU = "cpu"
    WALL = "wall"
    MEMORY = "memory"
    OUTPUT = "output"
    PROCESSES = "processes"
    FILE_SIZE = "file_size"


class MemorySource(StrEnum):
    """Source of the resource usage of a run."""

    CGROUP1 = "cgroup1"
    CGROUP2 = "cgroup2"
    RLIMIT = "rlimit"
    """No usable cgroup: usage is sampled from /proc, limits are rlimits."""


class ProtocolReason(StrEnum):
    """Why a report was rejected; label of ``judge_protocol_errors_total``."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    INVALID_JSON = "invalid_json"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_KEY = "missing_key"
    WRONG_TYPE = "wrong_type"
    OUT_OF_RANGE = "out_of_range"
    SCHEMA_VERSION = "schema_version"
    UNKNOWN_VALUE = "unknown_value"
    JOB_MISMATCH = "job_mismatch"
    ATTEMPT_MISMATCH = "attempt_mismatch"
    CONTRADICTION = "contradiction"


class ProtocolError(InternalFault):
    """The report of the launcher violates the protocol."""

    code = "JUDGE_PROTOCOL_ERROR"

    def __init__(self, reason: ProtocolReason, detail: str) -> None:
        self.reason = reason
        super().__init__(f"Invalid report of the sandbox launcher ({reason}): {detail}.", reason=str(reason))


@dataclass(frozen=True, slots=True)
class SandboxFault:
    """A failure of the sandbox itself: the step, its errno, and the index in a list (-1: no list)."""

    step: str
    errno: int
    index: int
    text: str

    def __str__(self) -> str:
        """Format as one line."""
        where = f"[{self.index}]" if self.index >= 0 else ""
        return f"{self.step}{where}: {self.text}"


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """Result for one collected name; an empty ``error`` means that it was copied completely."""

    name: str
    files: int
    size_bytes: int
    error: str


class SandboxRunReport(NamedTuple):
    """Result and resource usage of one run, measured over the whole process tree.

    A named tuple, because creating a frozen dataclass with this many fields takes three times as long.
    """

    verdict: SandboxVerdict
    time_ms: int
    """CPU time, user and system, of the whole process tree."""
    wall_ms: int
    mem_kb: int
    exit_code: int
    exit_signal: int
    limit: LimitKind | None = None
    sandbox_error: SandboxFault | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    output_bytes: int = 0
    """Bytes of stdout and stderr, up to the limit."""
    collected: tuple[CollectedFile, ...] = ()
    time_us: int = 0
    wall_us: int = 0
    ended_ns: int = 0
    """CLOCK_MONOTONIC at the end of the program; tells which side of an interaction ended first."""
    processes_refused: bool = False
    """Whether the process limit was hit, whatever the verdict."""
    memory_source: MemorySource = MemorySource.CGROUP1
    degraded: bool = False
    """Executed by the command, because the agent was not available."""
    job_id: str = ""
    attempt_id: int = 0

    @property
    def ok(self) -> bool:
        """Whether the program exited with code 0 within its limits."""
        return self.verdict is SandboxVerdict.OK


def fault_report(fault: SandboxFault, job_id: str = "", attempt_id: int = 0) -> SandboxRunReport:
    """Return a report with verdict SE for a run that failed because of the sandbox."""
    return SandboxRunReport(
        verdict=SandboxVerdict.SE,
        time_ms=0,
        wall_ms=0,
        mem_kb=0,
        exit_code=-1,
        exit_signal=0,
        sandbox_error=fault,
        job_id=job_id,
        attempt_id=attempt_id,
    )


_STATUS: Final = {
    SandboxVerdict.OK: "Finished",
    SandboxVerdict.TLE: "Time Limit Exceeded",
    SandboxVerdict.MLE: "Memory Limit Exceeded",
    SandboxVerdict.OLE: "Output Limit Exceeded",
    SandboxVerdict.RE: "Runtime Error",
    SandboxVerdict.SE: "System Error",
}
_COUNTS: Final = (
    "attempt_id",
    "time_ms",
    "mem_kb",
    "exit_signal",
    "time_used",
    "memory_used",
    "time_us",
    "wall_ms",
    "wall_us",
    "ended_ns",
    "output_bytes",
    "stdout_bytes",
    "stderr_bytes",
    "error_errno",
)
"""Integers from 0 to 2^63 - 1."""
_OR_NONE: Final = ("exit_code", "error_index")
"""Integers that are -1 if absent."""
_STRINGS: Final = ("job_id", "verdict", "sandbox_error", "status", "error", "limit", "memory_source", "error_step")
_BOOLEANS: Final = ("stdout_truncated", "stderr_truncated", "processes_refused")
REPORT_KEYS: Final = frozenset({"schema_version", "collected", *_COUNTS, *_OR_NONE, *_STRINGS, *_BOOLEANS})
"""Every key of the line; a test compares it with the launcher and the reference page."""


def parse_report(
    line: bytes, *, job_id: str = "", attempt_id: int = 0, collect: tuple[str, ...] = ()
) -> tuple[SandboxRunReport, int, int]:
    """Parse and validate a report line; return the report and the captured bytes of stdout and stderr."""
    body = _load(line)
    _check_types(body)
    _check_identity(body, job_id, attempt_id)
    verdict = _member(SandboxVerdict, body["verdict"], "verdict")
    _check_consistency(body, verdict)
    report = SandboxRunReport(
        verdict=verdict,
        time_ms=body["time_ms"],
        wall_ms=body["wall_ms"],
        mem_kb=body["mem_kb"],
        exit_code=body["exit_code"],
        exit_signal=body["exit_signal"],
        limit=_member(LimitKind, body["limit"], "limit") if body["limit"] else None,
        sandbox_error=_fault(body),
        stdout_truncated=body["stdout_truncated"],
        stderr_truncated=body["stderr_truncated"],
        output_bytes=body["output_bytes"],
        collected=_collected(body["collected"], collect),
        time_us=body["time_us"],
        wall_us=body["wall_us"],
        ended_ns=body["ended_ns"],
        processes_refused=body["processes_refused"],
        memory_source=_member(MemorySource, body["memory_source"], "memory_source"),
        job_id=job_id,
        attempt_id=attempt_id,
    )
    return report, body["stdout_bytes"], body["stderr_bytes"]


def _load(line: bytes) -> dict[str, Any]:
    if not line:
        raise ProtocolError(ProtocolReason.EMPTY, "no data")
    if len(line) > REPORT_BYTES_MAX:
        raise ProtocolError(ProtocolReason.TOO_LARGE, f"{len(line)} bytes")
    try:
        body = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(ProtocolReason.INVALID_JSON, "not JSON") from error
    if not isinstance(body, dict):
        raise ProtocolError(ProtocolReason.NOT_AN_OBJECT, f"a {type(body).__name__}")
    return body


def _check_types(body: dict[str, Any]) -> None:
    if not body.keys() >= REPORT_KEYS:
        raise ProtocolError(ProtocolReason.MISSING_KEY, min(REPORT_KEYS - body.keys()))
    version = body["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ProtocolError(ProtocolReason.SCHEMA_VERSION, repr(version)[:40])
    for kind, keys in ((int, _COUNTS + _OR_NONE), (str, _STRINGS), (bool, _BOOLEANS)):
        for key in keys:
            if type(body[key]) is not kind:
                raise ProtocolError(ProtocolReason.WRONG_TYPE, key)
    for minimum, counts in ((0, _COUNTS), (-1, _OR_NONE)):
        for key in counts:
            if not minimum <= body[key] < 2**63:
                raise ProtocolError(ProtocolReason.OUT_OF_RANGE, key)


def _check_identity(body: dict[str, Any], job_id: str, attempt_id: int) -> None:
    if body["job_id"] != job_id:
        raise ProtocolError(ProtocolReason.JOB_MISMATCH, repr(body["job_id"])[:60])
    if body["attempt_id"] != attempt_id:
        raise ProtocolError(ProtocolReason.ATTEMPT_MISMATCH, str(body["attempt_id"]))


def _check_consistency(body: dict[str, Any], verdict: SandboxVerdict) -> None:
    """Reject an inconsistent report: a system error must never become a verdict about the program, or the reverse."""
    if (verdict is SandboxVerdict.SE) != bool(body["sandbox_error"]):
        raise ProtocolError(ProtocolReason.CONTRADICTION, "verdict SE requires sandbox_error, and the reverse")
    if verdict is SandboxVerdict.OK and (body["exit_code"] != 0 or body["exit_signal"] != 0):
        raise ProtocolError(ProtocolReason.CONTRADICTION, "verdict OK with a non-zero exit code or a signal")
    if body["status"] != _STATUS[verdict]:
        raise ProtocolError(ProtocolReason.CONTRADICTION, "status and verdict differ")
    if body["time_used"] != body["time_ms"] or body["memory_used"] != body["mem_kb"]:
        raise ProtocolError(ProtocolReason.CONTRADICTION, "compatibility fields differ from their originals")


def _fault(body: dict[str, Any]) -> SandboxFault | None:
    if not body["sandbox_error"]:
        return None
    return SandboxFault(
        step=body["error_step"], errno=body["error_errno"], index=body["error_index"], text=body["error"]
    )


def _collected(entries: Any, names: tuple[str, ...]) -> tuple[CollectedFile, ...]:
    if not isinstance(entries, list) or len(entries) not in (0, len(names)):
        raise ProtocolError(ProtocolReason.WRONG_TYPE, "collected")
    result = []
    for name, entry in zip(names, entries, strict=False):
        if not isinstance(entry, list) or len(entry) != 3 or any(type(value) is not int for value in entry):
            raise ProtocolError(ProtocolReason.WRONG_TYPE, "collected")
        files, size_bytes, code = entry
        if min(entry) < 0:
            raise ProtocolError(ProtocolReason.OUT_OF_RANGE, "collected")
        result.append(CollectedFile(name, files, size_bytes, errno.errorcode.get(code, str(code)) if code else ""))
    return tuple(result)


def _member(kind: type[E], value: str, key: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise ProtocolError(ProtocolReason.UNKNOWN_VALUE, f"{key} {value[:40]!r}") from None
