"""Executions on the wire."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel
from adjudge.domain.timestamps import format_timestamp
from adjudge.domain.verdict import Verdict
from adjudge.store.judging import executions

BATCH_MOST = 100


class ExecutionLimits(ApiModel):
    """Limits per run; omitted values use the default, values above the operator's maximum are rejected."""

    cpu_ms: int = Field(2_000, ge=1, le=600_000)
    wall_ms: int | None = Field(None, ge=1, le=1_200_000, description="Default: three times the CPU time.")
    memory_mib: int = Field(256, ge=16, le=65_536)


class ExecutionCreate(ApiModel):
    """A program to run."""

    language: str = Field(min_length=1, max_length=64, examples=["python3"])
    source: str = Field(examples=["print(int(input()) * 2)\n"])
    stdin: str = Field("", description="Input of a single run.", examples=["21\n"])
    stdins: list[str] | None = Field(None, min_length=1, description="Several inputs; excludes `stdin`.")
    limits: ExecutionLimits = Field(default_factory=lambda: ExecutionLimits.model_validate({}))


class ExecutionBatchCreate(ApiModel):
    """A batch of programs to run; all are accepted, or none."""

    items: list[ExecutionCreate] = Field(min_length=1, max_length=BATCH_MOST)


class ExecutionRunRead(ApiModel):
    """Result for one input."""

    verdict: Verdict | None = Field(description="AC: exit code 0 within the limits.")
    time_ms: int | None
    wall_ms: int | None
    mem_kb: int | None
    exit_code: int | None
    exit_signal: int | None
    limit: str | None = Field(description="Limit that was exceeded.")
    stdout: str | None
    stderr: str | None
    encoding: str = Field(examples=["utf-8"], description="utf-8, or base64 for binary output.")
    is_truncated: bool


class ExecutionRead(ApiModel):
    """An execution and its results."""

    id: str
    job_id: str
    language: str
    state: str = Field(examples=["finished"], description="pending, finished, failed or canceled.")
    verdict: Verdict | None = Field(description="Worst verdict of its runs, or CE.")
    compile_message: str | None
    runs: list[ExecutionRunRead]
    created_at: str
    finished_at: str | None
    expires_at: str

    @classmethod
    def of(cls, found: executions.ExecutionRow) -> ExecutionRead:
        """From the store's value."""
        return cls(
            id=found.id,
            job_id=found.job_id,
            language=found.language,
            state=found.state,
            verdict=found.verdict,
            compile_message=found.compile_message,
            runs=[
                ExecutionRunRead(
                    verdict=run.verdict,
                    time_ms=run.time_ms,
                    wall_ms=run.wall_ms,
                    mem_kb=run.mem_kb,
                    exit_code=run.exit_code,
                    exit_signal=run.exit_signal,
                    limit=run.limit_hit,
                    stdout=run.stdout,
                    stderr=run.stderr,
                    encoding="base64" if run.is_base64 else "utf-8",
                    is_truncated=run.is_truncated,
                )
                for run in found.runs
            ],
            created_at=format_timestamp(found.created_at),
            finished_at=format_timestamp(found.finished_at),
            expires_at=format_timestamp(found.expires_at),
        )


class ExecutionList(ApiModel):
    """Executions in request order."""

    items: list[ExecutionRead]


class ExecutionPage(ApiModel):
    """A page of your executions without output, newest first."""

    items: list[ExecutionRead]
    next: str | None
