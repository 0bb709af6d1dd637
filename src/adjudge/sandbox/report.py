"""What a run came to: the report the launcher writes as one line of JSON, read with suspicion.

The line is version 1 of the judge protocol; ``docs/reference/launcher.md`` explains every key. A line that is not
exactly what the protocol allows becomes a ``ProtocolError`` with one of a few reasons, never a verdict.
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
    """How a run ended; whether its answer is right is decided elsewhere."""

    OK = "OK"
    TLE = "TLE"
    MLE = "MLE"
    OLE = "OLE"
    RE = "RE"
    SE = "SE"


class LimitKind(StrEnum):
    """Which limit ended a run, or was run into."""

    CPU = "cpu"
    WALL = "wall"
    MEMORY = "memory"
    OUTPUT = "output"
    PROCESSES = "processes"
    FILE_SIZE = "file_size"


class MemorySource(StrEnum):
    """Where the figures of a run come from, from exact to fair."""

    CGROUP1 = "cgroup1"
    CGROUP2 = "cgroup2"
    RLIMIT = "rlimit"
    """No cgroup may be used: sampled from /proc, with rlimits as the wall."""


class ProtocolReason(StrEnum):
    """Why a report was not believed; the label of ``judge_protocol_errors_total``."""

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
    """The launcher's report does not keep the protocol."""

    code = "JUDGE_PROTOCOL_ERROR"

    def __init__(self, reason: ProtocolReason, detail: str) -> None:
        self.reason = reason
        super().__init__(f"The launcher's report was refused ({reason}): {detail}.", reason=str(reason))


@dataclass(frozen=True, slots=True)
class SandboxFault:
    """What *we* failed at: the step, the kernel's errno, and which entry of a list it was about (-1: none)."""

    step: str
    errno: int
    index: int
    text: str

    def __str__(self) -> str:
        """One line for people."""
        where = f"[{self.index}]" if self.index >= 0 else ""
        return f"{self.step}{where}: {self.text}"


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """What became of one name that was to be copied out: an empty ``error`` means it is there."""

    name: str
    files: int
    size_bytes: int
    error: str


class SandboxRunReport(NamedTuple):
    """One run, as measured over its whole process tree.

    A named tuple, because a frozen dataclass of so many fields takes three times as long to make, on every run's way.
    """

    verdict: SandboxVerdict
    time_ms: int
    """CPU time, user and system, of the whole tree."""
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
    """stdout and stderr together, as far as they were let through."""
    collected: tuple[CollectedFile, ...] = ()
    time_us: int = 0
    wall_us: int = 0
    ended_ns: int = 0
    """CLOCK_MONOTONIC at which the program ended: tells which of two joined runs ended first."""
    processes_refused: bool = False
    """The process limit was run into, whatever came of it."""
    memory_source: MemorySource = MemorySource.CGROUP1
    degraded: bool = False
    """Run by the command because the agent could not."""
    job_id: str = ""
    attempt_id: int = 0

    @property
    def ok(self) -> bool:
        """The program ended by itself, within its limits, with exit code 0."""
        return self.verdict is SandboxVerdict.OK


def fault_report(fault: SandboxFault, job_id: str = "", attempt_id: int = 0) -> SandboxRunReport:
    """Make the report of a run that never was, because of us."""
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
_PLAIN_VERDICTS: Final = {
    (verdict.value.encode(), status.encode()): verdict
    for verdict, status in _STATUS.items()
    if verdict is not SandboxVerdict.SE
}
_PLAIN_LIMITS: Final[dict[bytes, LimitKind | None]] = {b"": None, **{kind.value.encode(): kind for kind in LimitKind}}
_PLAIN_SOURCES: Final = {source.value.encode(): source for source in MemorySource}


def _plain_form() -> re.Pattern[bytes]:
    """The line as ``launcher/report.c`` writes it when nothing of ours failed and nothing was collected."""
    number, flag = "(?:0|[1-9][0-9]{0,17})", "(?:true|false)"

    def key(name: str, form: str) -> str:
        return f'"{name}":(?P<{name}>{form})'

    def words(name: str, values: Iterable[bytes]) -> str:
        return f'"{name}":"(?P<{name}>{"|".join(value.decode() for value in values)})"'

    parts = ['"schema_version":1', '"job_id":"(?P<job_id>[^"\\\\]*)"', key("attempt_id", number)]
    parts += [words("verdict", (verdict for verdict, _ in _PLAIN_VERDICTS)), key("time_ms", number)]
    parts += [key("mem_kb", number), key("exit_signal", number), '"sandbox_error":"","error":"","error_step":""']
    parts += ['"error_errno":0,"error_index":-1', words("status", (status for _, status in _PLAIN_VERDICTS))]
    parts += ['"time_used":(?P=time_ms)', '"memory_used":(?P=mem_kb)', key("exit_code", f"-1|{number}")]
    parts += [key("time_us", number), key("wall_ms", number), key("wall_us", number), key("ended_ns", number)]
    parts += [words("limit", _PLAIN_LIMITS), words("memory_source", _PLAIN_SOURCES), key("processes_refused", flag)]
    parts += [key("output_bytes", number), key("stdout_bytes", number), key("stderr_bytes", number)]
    parts += [key("stdout_truncated", flag), key("stderr_truncated", flag), r'"collected":\[\]']
    return re.compile(("\\{" + ",".join(parts) + "\\}\n").encode())


_PLAIN: Final = _plain_form()
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
"""Integers that are -1 where there is none."""
_STRINGS: Final = ("job_id", "verdict", "sandbox_error", "status", "error", "limit", "memory_source", "error_step")
_BOOLEANS: Final = ("stdout_truncated", "stderr_truncated", "processes_refused")
REPORT_KEYS: Final = frozenset({"schema_version", "collected", *_COUNTS, *_OR_NONE, *_STRINGS, *_BOOLEANS})
"""Every key of the line; a test holds the launcher and the reference page to it."""
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
    """Read one report line; gives the report and how many captured bytes of stdout and of stderr belong to it."""
    return parse_report_fast(line, job_id, attempt_id) or parse_report_json(line, job_id, attempt_id, collect)


def parse_report_json(
    line: bytes, job_id: str, attempt_id: int, collect: tuple[str, ...]
) -> tuple[SandboxRunReport, int, int]:
    """Read any line, key by key; what is wrong with one is known here alone."""
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
    """Read a line of the most common form, in half the time: no fault, nothing collected, keys in the launcher's order.

    Whatever is not exactly so is left to ``parse_any_report``: None here says nothing.
    """
    match = _PLAIN.fullmatch(line)
    if match is None:
        return None
    # fmt: off
    (job, attempt, name, time_ms, mem_kb, exit_signal, status, exit_code, time_us, wall_ms, wall_us, ended_ns, limit,
     source, refused, output, stdout, stderr, stdout_cut, stderr_cut) = match.groups()
    # fmt: on
    verdict = _PLAIN_VERDICTS.get((name, status))
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
        _PLAIN_LIMITS[limit],
        stdout_truncated=stdout_cut == b"true",
        stderr_truncated=stderr_cut == b"true",
        output_bytes=int(output),
        time_us=int(time_us),
        wall_us=int(wall_us),
        ended_ns=int(ended_ns),
        processes_refused=refused == b"true",
        memory_source=_PLAIN_SOURCES[source],
        job_id=job_id,
        attempt_id=attempt_id,
    )
    return report, int(stdout), int(stderr)


def _load(line: bytes) -> dict[str, Any]:
    if not line:
        raise ProtocolError(ProtocolReason.EMPTY, "no bytes came")
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
    """Check whole groups at once, and look for the culprit only when there is one: this is on every run's way."""
    if not body.keys() >= REPORT_KEYS:
        raise ProtocolError(ProtocolReason.MISSING_KEY, min(REPORT_KEYS - body.keys()))
    version = body["schema_version"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise ProtocolError(ProtocolReason.SCHEMA_VERSION, repr(version)[:40])
    for values_of, keys, kinds in _TYPED:
        if set(map(type, values_of(body))) != kinds:
            raise ProtocolError(ProtocolReason.WRONG_TYPE, next(key for key in keys if type(body[key]) not in kinds))
    for values_of, keys, least in _RANGES:
        values = values_of(body)
        if min(values) < least or max(values) >= 2**63:
            culprit = next(key for key in keys if not least <= body[key] < 2**63)
            raise ProtocolError(ProtocolReason.OUT_OF_RANGE, culprit)


def _check_identity(body: dict[str, Any], job_id: str, attempt_id: int) -> None:
    if body["job_id"] != job_id:
        raise ProtocolError(ProtocolReason.JOB_MISMATCH, repr(body["job_id"])[:60])
    if body["attempt_id"] != attempt_id:
        raise ProtocolError(ProtocolReason.ATTEMPT_MISMATCH, str(body["attempt_id"]))


def _check_consistency(body: dict[str, Any], verdict: SandboxVerdict) -> None:
    """Refuse a report that says two things: a fault of ours must never read as theirs, or the reverse."""
    if (verdict is SandboxVerdict.SE) != bool(body["sandbox_error"]):
        raise ProtocolError(ProtocolReason.CONTRADICTION, "verdict SE and sandbox_error must come together")
    if verdict is SandboxVerdict.OK and (body["exit_code"] != 0 or body["exit_signal"] != 0):
        raise ProtocolError(ProtocolReason.CONTRADICTION, "verdict OK with a failed exit")
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
