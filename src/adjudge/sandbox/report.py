"""The report of a sandbox run: one line of JSON from the launcher, parsed with full validation.

The line follows version 1 of the judge protocol; ``docs/reference/launcher.md`` describes every key. A line that
violates the protocol becomes a ``ProtocolError`` with a reason, never a verdict.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from adjudge.domain.errors import InternalFault

SCHEMA_VERSION: Final = 1
REPORT_BYTES_MAX: Final = 64 * 1024
_decode: Final = json.JSONDecoder().decode
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
_FAST_VERDICTS: Final = {
    (verdict.value.encode(), status.encode()): verdict
    for verdict, status in _STATUS.items()
    if verdict is not SandboxVerdict.SE
}
_FAST_LIMITS: Final[dict[bytes, LimitKind | None]] = {b"": None, **{kind.value.encode(): kind for kind in LimitKind}}
_FAST_SOURCES: Final = {source.value.encode(): source for source in MemorySource}


def _fast_pattern() -> re.Pattern[bytes]:
    """Pattern of a line as ``launcher/report.c`` writes it, without a fault and without collected files."""
    number, flag = "(?:0|[1-9][0-9]{0,17})", "(?:true|false)"

    def key(name: str, form: str) -> str:
        return f'"{name}":(?P<{name}>{form})'

    def choice(name: str, values: Iterable[bytes]) -> str:
        return f'"{name}":"(?P<{name}>{"|".join(value.decode() for value in values)})"'

    parts = ['"schema_version":1', '"job_id":"(?P<job_id>[^"\\\\]*)"', key("attempt_id", number)]
    parts += [choice("verdict", (verdict for verdict, _ in _FAST_VERDICTS)), key("time_ms", number)]
    parts += [key("mem_kb", number), key("exit_signal", number), '"sandbox_error":"","error":"","error_step":""']
    parts += ['"error_errno":0,"error_index":-1', choice("status", (status for _, status in _FAST_VERDICTS))]
    parts += ['"time_used":(?P=time_ms)', '"memory_used":(?P=mem_kb)', key("exit_code", f"-1|{number}")]
    parts += [key("time_us", number), key("wall_ms", number), key("wall_us", number), key("ended_ns", number)]
    parts += [choice("limit", _FAST_LIMITS), choice("memory_source", _FAST_SOURCES), key("processes_refused", flag)]
    parts += [key("output_bytes", number), key("stdout_bytes", number), key("stderr_bytes", number)]
    parts += [key("stdout_truncated", flag), key("stderr_truncated", flag), r'"collected":\[\]']
    return re.compile(("\\{" + ",".join(parts) + "\\}\n").encode())


_FAST_PATTERN: Final = _fast_pattern()
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
_Values = Callable[[dict[str, Any]], tuple[Any, ...]]
_TYPED: Final[tuple[tuple[_Values, tuple[str, ...], set[type]], ...]] = (
    (itemgetter(*_COUNTS, *_OR_NONE), (*_COUNTS, *_OR_NONE), {int}),
    (itemgetter(*_STRINGS), _STRINGS, {str}),
    (itemgetter(*_BOOLEANS), _BOOLEANS, {bool}),
)
_RANGES: Final[tuple[tuple[_Values, tuple[str, ...], int], ...]] = (
    (itemgetter(*_COUNTS), _COUNTS, 0),
    (itemgetter(*_OR_NONE), _OR_NONE, -1),
)


def parse_report(
    line: bytes, *, job_id: str = "", attempt_id: int = 0, collect: tuple[str, ...] = ()
) -> tuple[SandboxRunReport, int, int]:
    """Parse a report line; return the report and the captured bytes of stdout and stderr."""
    return parse_report_fast(line, job_id, attempt_id) or parse_report_json(line, job_id, attempt_id, collect)


def parse_report_json(
    line: bytes, job_id: str, attempt_id: int, collect: tuple[str, ...]
) -> tuple[SandboxRunReport, int, int]:
    """Parse any line with full validation; raises ``ProtocolError``."""
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


def parse_report_fast(line: bytes, job_id: str, attempt_id: int) -> tuple[SandboxRunReport, int, int] | None:
    """Parse the most common form in half the time: no fault, nothing collected, keys in the launcher's order.

    None means that the line has another form, not that it is invalid; ``parse_report_json`` decides.
    """
    match = _FAST_PATTERN.fullmatch(line)
    if match is None:
        return None
    # fmt: off
    (job, attempt, name, time_ms, mem_kb, exit_signal, status, exit_code, time_us, wall_ms, wall_us, ended_ns, limit,
     source, refused, output, stdout, stderr, stdout_cut, stderr_cut) = match.groups()
    # fmt: on
    verdict = _FAST_VERDICTS.get((name, status))
    if verdict is None or job != job_id.encode() or int(attempt) != attempt_id:
        return None
    if verdict is SandboxVerdict.OK and (exit_code != b"0" or exit_signal != b"0"):
        return None
    report = SandboxRunReport(
        verdict,
        int(time_ms),
        int(wall_ms),
        int(mem_kb),
        int(exit_code),
        int(exit_signal),
        _FAST_LIMITS[limit],
        stdout_truncated=stdout_cut == b"true",
        stderr_truncated=stderr_cut == b"true",
        output_bytes=int(output),
        time_us=int(time_us),
        wall_us=int(wall_us),
        ended_ns=int(ended_ns),
        processes_refused=refused == b"true",
        memory_source=_FAST_SOURCES[source],
        job_id=job_id,
        attempt_id=attempt_id,
    )
    return report, int(stdout), int(stderr)


def _load(line: bytes) -> dict[str, Any]:
    if not line:
        raise ProtocolError(ProtocolReason.EMPTY, "no data")
    if len(line) > REPORT_BYTES_MAX:
        raise ProtocolError(ProtocolReason.TOO_LARGE, f"{len(line)} bytes")
    try:
        body = _decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(ProtocolReason.INVALID_JSON, "not JSON") from error
    if not isinstance(body, dict):
        raise ProtocolError(ProtocolReason.NOT_AN_OBJECT, f"a {type(body).__name__}")
    return body


def _check_types(body: dict[str, Any]) -> None:
    """Check groups of values at once, because this runs for every report; find the invalid key only on failure."""
    if not body.keys() >= REPORT_KEYS:
        raise ProtocolError(ProtocolReason.MISSING_KEY, min(REPORT_KEYS - body.keys()))
    version = body["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ProtocolError(ProtocolReason.SCHEMA_VERSION, repr(version)[:40])
    for values_of, keys, kinds in _TYPED:
        if set(map(type, values_of(body))) != kinds:
            raise ProtocolError(ProtocolReason.WRONG_TYPE, next(key for key in keys if type(body[key]) not in kinds))
    for values_of, keys, minimum in _RANGES:
        values = values_of(body)
        if min(values) < minimum or max(values) >= 2**63:
            invalid_key = next(key for key in keys if not minimum <= body[key] < 2**63)
            raise ProtocolError(ProtocolReason.OUT_OF_RANGE, invalid_key)


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


_MEMBERS: Final[dict[type[StrEnum], dict[str, StrEnum]]] = {
    kind: {member.value: member for member in kind} for kind in (SandboxVerdict, LimitKind, MemorySource)
}


def _member(kind: type[E], value: str, key: str) -> E:
    member = _MEMBERS[kind].get(value)
    if not isinstance(member, kind):
        raise ProtocolError(ProtocolReason.UNKNOWN_VALUE, f"{key} {value[:40]!r}")
    return member
