"""Executions on the wire."""

from __future__ import annotations

from pydantic import Field

from adjudge.api.schema.base import ApiModel

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
