"""Creates the job of a node: identifiers, and what a worker needs before it claims the job."""

from __future__ import annotations

from typing import Final

from adjudge.domain.chain import Node
from adjudge.store.chains.models import JOB_KIND_NODE
from adjudge.store.jobs.models import NewJob

HAS_CROSS_RUN_LIMITS: Final = "shares"
"""In the payload of jobs whose chain has limits over its runs: the chain is locked before they finish."""

NODE_TIMEOUT_MS: Final = 3_600_000
"""Default timeout of an attempt of a node without ``timeout_ms``."""
_TIMEOUT_MARGIN_MS: Final = 10_000
"""A node's own deadline is kept by its handler; the worker's net hangs this much lower."""


def node_job(
    job_id: str,
    key: tuple[str, str],
    node: Node,
    chain: tuple[str, str],
    trace_id: str | None,
    *,
    attempts_before: int = 0,
    shares: bool = False,
    default_timeout_ms: int = NODE_TIMEOUT_MS,
) -> NewJob:
    """The job of a node of a chain in some version; its id in the run is, for an instance, not that of ``node``."""
    run_id, node_id = key
    return NewJob(
        id=job_id,
        kind=JOB_KIND_NODE,
        chain_run_id=run_id,
        node_id=node_id,
        max_attempts=node.retry.max_attempts,
        priority=node.priority,
        timeout_ms=default_timeout_ms if node.timeout_ms is None else node.timeout_ms + _TIMEOUT_MARGIN_MS,
        payload={
            "run_id": run_id,
            "node_id": node_id,
            "type": node.type,
            "chain_id": chain[0],
            "chain_version": chain[1],
            "attempts_before": str(attempts_before),
            "backoff_ms": str(node.retry.backoff_ms),
            **({} if node.deps else {"is_root": "yes"}),
            **({HAS_CROSS_RUN_LIMITS: "yes"} if shares else {}),
        },
        actor="engine",
        trace_id=trace_id,
    )
