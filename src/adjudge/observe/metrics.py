"""All metrics, declared once.

Labels are few and bounded (INV-6): statuses, reasons, kinds; never an id of a job, submission or user. Code that counts
imports the name from here: ``metrics.WORKER_CLAIM.labels("won", "ok").inc()``. Labels are in the declared order.
``docs/reference/metrics.md`` is generated from ``ALL_METRICS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

PREFIX: Final = "adjudge_"

REGISTRY: Final = CollectorRegistry()
"""Our own registry, without metrics that libraries add to the default one."""

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What the reference page says about one metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    purpose: str


ALL_METRICS: Final[list[MetricInfo]] = []

_FAST_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Buckets for one statement or one delivery."""
_LONG_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0)
"""Buckets for running programs or waiting for a worker."""


def _counter(name: str, purpose: str, *labels: str) -> Counter:
    ALL_METRICS.append(MetricInfo(PREFIX + name, "counter", labels, purpose))
    return Counter(PREFIX + name, purpose, labels, registry=REGISTRY)


def _gauge(name: str, purpose: str, *labels: str) -> Gauge:
    ALL_METRICS.append(MetricInfo(PREFIX + name, "gauge", labels, purpose))
    return Gauge(PREFIX + name, purpose, labels, registry=REGISTRY)


def _histogram(name: str, purpose: str, *labels: str, buckets: tuple[float, ...]) -> Histogram:
    ALL_METRICS.append(MetricInfo(PREFIX + name, "histogram", labels, purpose))
    return Histogram(PREFIX + name, purpose, labels, registry=REGISTRY, buckets=buckets)


# Submissions and judge runs: written by the store with every transition.
SUBMISSION_TRANSITIONS: Final = _counter(
    "submission_status_transitions_total", "Submission status transitions.", "from", "to"
)
JUDGE_RUN_TRANSITIONS: Final = _counter(
    "judge_run_status_transitions_total", "Judge run status transitions.", "from", "to"
)
JUDGE_RUN_DURATION: Final = _histogram(
    "judge_run_duration_seconds",
    "Seconds from the claim of a judge run to its end.",
    "status",
    buckets=_LONG_SECONDS,
)
SUBMISSION_CONFLICTS: Final = _counter(
    "submission_conflicts_total", "Submission writes refused because of a version conflict."
)
JUDGE_RUN_CONFLICTS: Final = _counter("judge_run_conflicts_total", "Judge run writes refused by status or fence.")

# Judging: written by the judge and the sandbox.
JUDGE_EXEC_DURATION: Final = _histogram(
    "judge_exec_duration_seconds",
    "Duration of one program execution in seconds, including set-up.",
    "result",
    buckets=_LONG_SECONDS,
)
JUDGE_EXEC_INFLIGHT: Final = _gauge("judge_exec_inflight", "Programs currently executing.")
JUDGE_EXEC: Final = _counter("judge_exec_total", "Program executions by result: ok, reject, error, timeout.", "result")
JUDGE_VERDICT: Final = _counter("judge_verdict_total", "Verdicts given.", "verdict")
JUDGE_PROTOCOL_ERRORS: Final = _counter("judge_protocol_errors_total", "Invalid launcher reports, by reason.", "reason")
JUDGE_OUTPUT_TRUNCATED: Final = _counter(
    "judge_output_truncated_total", "Program outputs truncated at the capture limit.", "stream"
)

SANDBOX_DEGRADED: Final = _counter(
    "sandbox_degraded_total", "Runs that fell back from the agent to one process per run.", "reason"
)

# Workers: written by the claim, heartbeat, finish and reclaim of jobs.
WORKER_CLAIM: Final = _counter("worker_claim_total", "Job claims by status and reason.", "status", "reason")
WORKER_HEARTBEAT: Final = _counter(
    "worker_lease_heartbeat_total", "Lease renewals by status and reason.", "status", "reason"
)
WORKER_STALE_ATTEMPT: Final = _counter("worker_stale_attempt_total", "Writes refused because a newer attempt exists.")
WORKER_THROTTLED: Final = _counter("worker_throttled_total", "Times a worker waited for the start rate limit.")
WORKER_FINALIZE: Final = _counter("worker_finalize_total", "Jobs finished, by final status.", "status")
WORKER_FINALIZE_REJECTED: Final = _counter(
    "worker_finalize_rejected_total", "Finishing writes refused, by reason.", "reason"
)
WORKER_FINALIZE_ERRORS: Final = _counter(
    "worker_finalize_errors_total", "Finishing writes that failed with a database error."
)
WORKER_FINALIZE_LATENCY: Final = _histogram(
    "worker_finalize_latency_seconds", "Duration of the finishing transaction in seconds.", buckets=_FAST_SECONDS
)
WORKER_RECLAIM: Final = _counter(
    "worker_reclaim_total", "Idle messages examined for reclaim, by status and reason.", "status", "reason"
)
WORKER_RECLAIM_LATENCY: Final = _histogram(
    "worker_reclaim_latency_seconds", "Duration of one reclaim pass in seconds.", buckets=_FAST_SECONDS
)
WORKER_RECLAIM_INFLIGHT: Final = _gauge("worker_reclaim_inflight", "Reclaimed jobs running now.")

# Dispatch and queues: written by the relay and the watchdog.
OUTBOX_DISPATCH: Final = _counter("api_outbox_dispatch_total", "Outbox rows sent to the stream.", "status", "reason")
OUTBOX_DISPATCH_LATENCY: Final = _histogram(
    "api_outbox_dispatch_latency_seconds",
    "Seconds from the creation of an outbox row to its delivery.",
    buckets=_FAST_SECONDS,
)
OUTBOX_PENDING: Final = _gauge("api_outbox_pending", "Outbox rows not yet delivered.")
JOBS_ENQUEUED: Final = _counter("jobs_enqueued_total", "Jobs created, by kind.", "kind")
JOBS_STARTED: Final = _counter("jobs_started_total", "Job attempts started, by kind.", "kind")
STREAM_FULL: Final = _gauge(
    "stream_full", "1 while dispatch to a priority band is paused because its stream is at capacity.", "band"
)
QUEUE_DEPTH: Final = _gauge("queue_depth", "Jobs waiting, by priority band.", "band")
QUEUE_WAIT: Final = _histogram("queue_wait_seconds", "Seconds from enqueue to claim.", buckets=_LONG_SECONDS)
DEAD_LETTERS: Final = _gauge("dead_letters", "Open dead letters.")
STALLED: Final = _counter("stalled_total", "Jobs whose lease expired because their worker was lost.")

# Admission and cache.
ADMISSION: Final = _counter("admission_total", "Admission decisions by decision and reason.", "decision", "reason")
CACHE_REQUESTS: Final = _counter(
    "cache_requests_total", "Cache lookups by entity, tier and result.", "entity", "tier", "result"
)

# Chains.
CHAIN_RUNS: Final = _counter("chain_runs_total", "Chain runs started, and finished by status.", "status")
CHAIN_NODE_DURATION: Final = _histogram(
    "chain_node_duration_seconds", "Duration of one node execution in seconds.", "type", "status", buckets=_LONG_SECONDS
)
CHAIN_NODES_INFLIGHT: Final = _gauge("chain_nodes_inflight", "Nodes currently executing.")

ProcessCollector(registry=REGISTRY)


def render_metrics() -> bytes:
    """All metrics in the Prometheus text format."""
    return generate_latest(REGISTRY)
