"""Rows and documents of executions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class NewExecution:
    """An execution to be created."""

    id: str
    user_id: str
    language: str
    source: str
    stdins: tuple[str, ...]
    limits: Mapping[str, int]
    ttl_ms: int
    """Retention."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of compiling and running (``judge.execution``)."""
    client_data: Mapping[str, Any] | None = None
    """What a compatible API needs to show the execution as its clients expect; not used by the worker."""
    callback_url: str | None = None
    """Where the result is sent."""
    output_bytes: int = 0
    """Size limit of its outputs; reserved until it is finished."""
    priority: int = 2
    delay_ms: int = 0
    timeout_ms: int | None = None
    trace_id: str | None = None
    request_id: str | None = None

    @property
    def kept_bytes(self) -> int:
        """The maximum size in the database."""
        return _input_bytes(self) + self.output_bytes


@dataclass(frozen=True, slots=True)
class FinishedExecutionRun:
    """Result of one input."""

    ordinal: int
    verdict: Verdict
    time_ms: int
    wall_ms: int
    mem_kb: int
    exit_code: int
    exit_signal: int
    limit_hit: str | None
    stdout: str
    stderr: str
    is_base64: bool
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class FinishedExecution:
    """Typed result of an execution job."""

    verdict: Verdict
    compile_message: str
    runs: tuple[FinishedExecutionRun, ...] = ()
    kept_bytes: int | None = None
    """The stored size including inputs; None keeps the reserved size."""


@dataclass(frozen=True, slots=True)
class ExecutionTask:
    """What a worker needs to run a program."""

    execution_id: str
    language: str
    source: str
    limits: Mapping[str, int]
    options: Mapping[str, Any]
    client_data: Mapping[str, Any] | None
    stdins: tuple[str, ...]

    @property
    def input_bytes(self) -> int:
        """The size of what was given, as it is stored."""
        return _input_bytes(self)


@dataclass(frozen=True, slots=True)
class ExecutionRunRow:
    """One input of an execution, with its result once it is finished."""

    ordinal: int
    verdict: Verdict | None
    time_ms: int | None
    wall_ms: int | None
    mem_kb: int | None
    exit_code: int | None
    exit_signal: int | None
    limit_hit: str | None
    stdout: str | None
    stderr: str | None
    is_base64: bool
    is_truncated: bool


@dataclass(frozen=True, slots=True)
class OwnedRun:
    """A run with the id of its execution."""

    execution_id: str
    run: ExecutionRunRow


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """An execution with its results."""

    id: str
    user_id: str
    job_id: str
    language: str
    limits: Mapping[str, int]
    state: str
    verdict: Verdict | None
    compile_message: str | None
    created_at: int
    finished_at: int | None
    expires_at: int
    is_running: bool
    client_data: Mapping[str, Any] | None
    callback_url: str | None
    runs: tuple[ExecutionRunRow, ...] = ()


def _input_bytes(item: NewExecution | ExecutionTask) -> int:
    texts = len(item.source.encode()) + sum(len(stdin.encode()) for stdin in item.stdins)
    return texts + sum(len(json.dumps(document)) for document in (item.options, item.client_data) if document)
