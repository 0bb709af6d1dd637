"""Operations: executions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from adjudge.client.models import ExecutionSpec
from adjudge.client.requests import fetch, fetch_list, get, path, post_idempotent, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program
from adjudge.schema.executions import ExecutionRead


def execute(
    retry: ClientRetryPolicy,
    language: str,
    source: str,
    *,
    stdins: Sequence[str] = ("",),
    cpu_ms: int | None = None,
    wall_ms: int | None = None,
    memory_mib: int | None = None,
    wait_sec: float = 30,
    key: str | None = None,
) -> Program[ExecutionRead]:
    """Run a program on one input for each of ``stdins``; the result may still be ``pending`` after ``wait_sec``."""
    wanted = ExecutionSpec(language, source, stdins, cpu_ms, wall_ms, memory_mib)
    parameters = query(wait=wait_sec)
    request = post_idempotent(path("executions"), _execution(wanted), key, asked=parameters, extra_timeout_sec=wait_sec)
    return (yield from fetch(ExecutionRead, request, retry))


def execute_batch(
    retry: ClientRetryPolicy, wanted: Iterable[ExecutionSpec], *, wait_sec: float = 0, key: str | None = None
) -> Program[tuple[ExecutionRead, ...]]:
    """Run many programs (all are accepted, or none)."""
    request = post_idempotent(
        path("executions", action="batch"),
        {"items": [_execution(item) for item in wanted]},
        key,
        asked=query(wait=wait_sec),
        extra_timeout_sec=wait_sec,
    )
    return (yield from fetch_list(ExecutionRead, request, retry))


def execution(retry: ClientRetryPolicy, execution_id: str, *, wait_sec: float = 0) -> Program[ExecutionRead]:
    """An execution and its outputs."""
    request = get(path("executions", execution_id), query(wait=wait_sec or None), extra_timeout_sec=wait_sec)
    return (yield from fetch(ExecutionRead, request, retry))


def _execution(wanted: ExecutionSpec) -> dict[str, Any]:
    limits = query(cpu_ms=wanted.cpu_ms, wall_ms=wanted.wall_ms, memory_mib=wanted.memory_mib)
    body = {"language": wanted.language, "source": wanted.source, "stdins": list(wanted.stdins)}
    return body | ({"limits": limits} if limits else {})
