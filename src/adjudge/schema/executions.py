"""Executions on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from adjudge.domain.verdict import Verdict
from adjudge.schema.base import ResponseModel, Timestamp, doc


@dataclass(frozen=True, kw_only=True)
class ExecutionRunRead(ResponseModel):
    """Result for one input."""

    sources: ClassVar = {"limit": "limit_hit"}

    verdict: Verdict | None = field(metadata=doc("AC: exit code 0 within the limits."))
    time_ms: int | None
    wall_ms: int | None
    mem_kb: int | None
    exit_code: int | None
    exit_signal: int | None
    limit: str | None = field(metadata=doc("Limit that was exceeded."))
    stdout: str | None
    stderr: str | None
    encoding: str = field(metadata=doc("utf-8, or base64 for binary output.", examples=["utf-8"]))
    is_truncated: bool


@dataclass(frozen=True, kw_only=True)
class ExecutionRead(ResponseModel):
    """An execution and its results."""

    id: str
    job_id: str
    language: str
    state: str = field(metadata=doc("pending, finished, failed or canceled.", examples=["finished"]))
    verdict: Verdict | None = field(metadata=doc("Worst verdict of its runs, or CE."))
    compile_message: str | None
    runs: list[ExecutionRunRead]
    created_at: Timestamp
    finished_at: Timestamp | None
    expires_at: Timestamp

    @property
    def is_finished(self) -> bool:
        return self.state != "pending"


@dataclass(frozen=True, kw_only=True)
class ExecutionList(ResponseModel):
    """Executions in request order."""

    items: list[ExecutionRead]


@dataclass(frozen=True, kw_only=True)
class ExecutionPage(ResponseModel):
    """A page of your executions without output, newest first."""

    items: list[ExecutionRead]
    next: str | None
