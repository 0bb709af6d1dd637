"""Spans of chain runs, recorded after the commit; those of their nodes are spans of jobs."""

from __future__ import annotations

from typing import Final

from adjudge.domain.states import ChainRunStatus
from adjudge.observe import tracing
from adjudge.observe.tracing import Span
from adjudge.store.chains.models import ChainRunFinished

_NS_PER_US: Final = 1_000


def record_chain_run(run: ChainRunFinished) -> None:
    """The span of a run that has finished; that of a subchain is part of its parent's run."""
    if run.trace_id is None or not tracing.is_sampled(run.trace_id):
        return
    tracing.record(
        Span(
            name="chain run",
            trace_id=run.trace_id,
            span_id=tracing.chain_run_span_id(run.run_id),
            start_ns=run.created_at * _NS_PER_US,
            end_ns=run.finished_at * _NS_PER_US,
            parent_id=None if run.parent_run_id is None else tracing.chain_run_span_id(run.parent_run_id),
            attributes={"adjudge.chain.run.id": run.run_id, "adjudge.chain.id": run.chain_id},
            error=str(run.status) if run.status is not ChainRunStatus.SUCCESS else None,
        )
    )
