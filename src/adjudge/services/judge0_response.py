"""Executions as submissions of the Judge0 API: status, message, times, and base64 as Judge0 writes it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import mean
from typing import Any, Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.verdict import Verdict
from adjudge.store.judging.execution_models import ExecutionRow, ExecutionRunRow, ExecutionTask

STATUSES: Final = {
    1: "In Queue",
    2: "Processing",
    3: "Accepted",
    4: "Wrong Answer",
    5: "Time Limit Exceeded",
    6: "Compilation Error",
    7: "Runtime Error (SIGSEGV)",
    8: "Runtime Error (SIGXFSZ)",
    9: "Runtime Error (SIGFPE)",
    10: "Runtime Error (SIGABRT)",
    11: "Runtime Error (NZEC)",
    12: "Runtime Error (Other)",
    13: "Internal Error",
    14: "Exec Format Error",
}
DEFAULT_FIELDS: Final = ("stdout", "time", "memory", "stderr", "token", "compile_output", "message", "status")
REQUEST_FIELDS: Final = (
    "source_code",
    "language_id",
    "compiler_options",
    "command_line_arguments",
    "stdin",
    "expected_output",
    "cpu_time_limit",
    "cpu_extra_time",
    "wall_time_limit",
    "memory_limit",
    "stack_limit",
    "max_processes_and_or_threads",
    "max_file_size",
    "number_of_runs",
    "enable_per_process_and_thread_time_limit",
    "enable_per_process_and_thread_memory_limit",
    "redirect_stderr_to_stdout",
    "enable_network",
    "callback_url",
    "additional_files",
)
RESULT_FIELDS: Final = (
    *DEFAULT_FIELDS,
    "exit_code",
    "exit_signal",
    "status_id",
    "language",
    "created_at",
    "finished_at",
    "wall_time",
)
ENCODED: Final = ("source_code", "stdin", "expected_output", "stdout", "stderr", "compile_output", "message")
"""Fields that are base64 if the query says so."""
_SIGNALS: Final = {11: 7, 25: 8, 8: 9, 6: 10}
_LINE: Final = 60
NOT_UTF8: Final = (
    "some attributes for this submission cannot be converted to UTF-8, use base64_encoded=true query parameter"
)


class NotUtf8(InvalidInput):
    """An output is not UTF-8, and the client did not ask for base64."""


def parse_fields(text: str | None) -> tuple[str, ...]:
    """The fields of ``fields=a,b``; ``*`` are all."""
    if not text:
        return DEFAULT_FIELDS
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if "*" in names:
        return tuple(dict.fromkeys((*RESULT_FIELDS, *REQUEST_FIELDS)))
    unknown = [name for name in names if name not in RESULT_FIELDS and name not in REQUEST_FIELDS]
    if unknown:
        raise InvalidInput(f"invalid fields: [{', '.join(unknown)}]")
    return names


def needs_task(fields: Sequence[str]) -> bool:
    """Whether the source or the input has to be read."""
    return any(name in fields for name in ("source_code", "stdin", "redirect_stderr_to_stdout"))


def render(
    execution: ExecutionRow,
    language_name: str,
    fields: Sequence[str],
    *,
    is_base64: bool,
    task: ExecutionTask | None = None,
) -> dict[str, Any]:
    """The submission with the given fields. Raises ``NotUtf8`` if an output cannot be shown as text."""
    values = _values(execution, language_name) | (_task_values(task) if task else {})
    return {name: _shown(name, values.get(name), is_base64) for name in fields}


def _shown(name: str, value: Any, is_base64: bool) -> Any:
    if name not in ENCODED or value is None:
        return value
    data = value.encode() if isinstance(value, str) else value
    if is_base64:
        return _encode64(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotUtf8(NOT_UTF8) from None


def _encode64(data: bytes) -> str:
    """Base64 in lines of 60 characters, each with a line break: clients of Judge0 receive it like this."""
    text = base64.b64encode(data).decode()
    return "".join(f"{text[start : start + _LINE]}\n" for start in range(0, len(text), _LINE))


def _values(execution: ExecutionRow, language_name: str) -> dict[str, Any]:
    given = execution.client_data or {}
    run = _decisive(execution.runs)
    status = _status(execution, run, given.get("expected_output"))
    return {
        **given.get("limits", {}),
        "compiler_options": given.get("compiler_options"),
        "command_line_arguments": given.get("command_line_arguments"),
        "expected_output": given.get("expected_output"),
        "enable_per_process_and_thread_time_limit": False,
        "enable_per_process_and_thread_memory_limit": False,
        "enable_network": False,
        "redirect_stderr_to_stdout": False,
        "callback_url": execution.callback_url,
        "token": execution.id,
        "language_id": given.get("language_id"),
        "language": {"id": given.get("language_id"), "name": language_name},
        "status_id": status,
        "status": {"id": status, "description": STATUSES[status]},
        "message": _message(execution, run, status),
        "compile_output": execution.compile_message or None,
        "created_at": _timestamp(execution.created_at),
        "finished_at": _timestamp(execution.finished_at),
        **_run_values(execution.runs, run),
    }


def _task_values(task: ExecutionTask) -> dict[str, Any]:
    return {
        "source_code": task.source,
        "stdin": task.stdins[0] if task.stdins else None,
        "redirect_stderr_to_stdout": bool(task.options.get("merges_stderr")),
    }


def _decisive(runs: Sequence[ExecutionRunRow]) -> ExecutionRunRow | None:
    """The first run that failed, else the last; None while there is no result."""
    ended = [run for run in runs if run.verdict is not None]
    return next((run for run in ended if run.verdict is not Verdict.AC), ended[-1] if ended else None)


def _run_values(runs: Sequence[ExecutionRunRow], run: ExecutionRunRow | None) -> dict[str, Any]:
    """Outputs of the decisive run; times and memory are the average of all runs, as in Judge0."""
    if run is None:
        return {}
    return {
        "stdout": _output(run, run.stdout) or None,
        "stderr": _output(run, run.stderr) or None,
        "exit_code": run.exit_code,
        "exit_signal": run.exit_signal or None,
        "time": f"{mean(item.time_ms or 0 for item in runs) / 1_000:.3f}",
        "wall_time": f"{mean(item.wall_ms or 0 for item in runs) / 1_000:.3f}",
        "memory": round(mean(item.mem_kb or 0 for item in runs)),
    }


def _output(run: ExecutionRunRow, text: str | None) -> bytes:
    if not text:
        return b""
    return base64.b64decode(text) if run.is_base64 else text.encode()


def _status(execution: ExecutionRow, run: ExecutionRunRow | None, expected: str | None) -> int:
    if execution.state == "pending":
        return 2 if execution.is_running else 1
    if execution.verdict is Verdict.CE:
        return 6
    if execution.state != "finished" or run is None or run.verdict is None:
        return 13
    if run.verdict is Verdict.AC:
        return 3 if expected is None or _same(_output(run, run.stdout), expected.encode()) else 4
    if run.verdict is Verdict.RE:
        return _SIGNALS.get(run.exit_signal or 0, 12) if run.exit_signal else 11
    return {Verdict.TLE: 5, Verdict.OLE: 8, Verdict.MLE: 11}.get(run.verdict, 13)


def _same(output: bytes, expected: bytes) -> bool:
    """Equal after trailing whitespace of every line and of the whole text is removed."""
    return _stripped(output) == _stripped(expected)


def _stripped(text: bytes) -> bytes:
    return b"\n".join(line.rstrip() for line in text.split(b"\n")).rstrip()


def _message(execution: ExecutionRow, run: ExecutionRunRow | None, status: int) -> str | None:
    if status == 13:
        return "Canceled." if execution.state == "canceled" else "The program could not be executed."
    if run is None or run.verdict in (None, Verdict.AC):
        return None
    if run.verdict is Verdict.TLE:
        return "Time limit exceeded" + (" (wall clock)" if run.limit_hit == "wall" else "")
    if run.verdict is Verdict.MLE:
        return "Memory limit exceeded"
    if run.verdict is Verdict.OLE:
        return "File size limit exceeded"
    return f"Caught fatal signal {run.exit_signal}" if run.exit_signal else f"Exited with error status {run.exit_code}"


def _timestamp(at_us: int | None) -> str | None:
    if at_us is None:
        return None
    return datetime.fromtimestamp(at_us / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
