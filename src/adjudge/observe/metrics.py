"""All metrics, declared once.

Labels are few and bounded (INV-6): statuses, reasons, kinds; never an id of a job, submission or user. Code that counts
imports the name from here: ``metrics.WORKER_CLAIM.labels("won", "ok").inc()``. Labels are in the declared order.
``docs/reference/metrics.md`` is generated from ``ALL_METRICS``.

Most metrics are of the process that is asked. Those of the system (queue, outbox, dead letters, workers) are not kept
here: they are counted for each scrape by ``services.system_metrics``, and are the same from every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

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
    is_of_system: bool = False
    """Whether every process serves the same value, counted for the whole system."""


ALL_METRICS: Final[list[MetricInfo]] = []

_FAST_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Buckets for one statement or one delivery."""
_LONG_SECONDS: Final = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
    *(10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0),
)
"""Buckets for running programs or waiting for a worker."""


def _counter(name: str, purpose: str, *labels: str) -> Counter:
    ALL_METRICS.append(MetricInfo(PREFIX + name, "counter", labels, purpose))
    return Counter(PREFIX + name, purpose, labels, registry=REGISTRY)


def _gauge(name: str, purpose: str, *labels: str) -> Gauge:
    ALL_METRICS.append(MetricInfo(PREFIX + name, "gauge", labels, purpose))
    return Gauge(PREFIX + name, purpose, labels, registry=REGISTRY)


def _system_gauge(name: str, purpose: str, *labels: str) -> None:
    ALL_METRICS.append(MetricInfo(PREFIX + name, "gauge", labels, purpose, is_of_system=True))


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
    "Seconds from the last claim of a judge run to its end.",
    "status",
    buckets=_LONG_SECONDS,
)
VERDICT_LATENCY: Final = _histogram(
    "verdict_latency_seconds", "Seconds from the acceptance of a submission to its verdict.", buckets=_LONG_SECONDS
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
JUDGE_VERDICT: Final = _counter("judge_verdict_total", "Committed verdicts of judge runs.", "verdict")
JUDGE_PROTOCOL_ERRORS: Final = _counter("judge_protocol_errors_total", "Invalid launcher reports, by reason.", "reason")
JUDGE_OUTPUT_TRUNCATED: Final = _counter(
    "judge_output_truncated_total", "Program outputs truncated at the capture limit.", "stream"
)

SANDBOX_DEGRADED: Final = _counter(
    "sandbox_degraded_total", "Runs that fell back from the agent to one process per run.", "reason"
)

# Retention: written by the scheduler.
RETENTION_DELETED: Final = _counter("retention_deleted_total", "Rows deleted by the retention, by table.", "table")
RETENTION_BEHIND: Final = _gauge(
    "retention_behind", "1 if the last pass of the retention left due rows of the table for the next one.", "table"
)
RETENTION_LAST_RUN: Final = _gauge(
    "retention_last_run_timestamp_seconds", "When the retention last completed a pass, in seconds since the Unix epoch."
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
WORKER_CACHE_DISK: Final = _gauge(
    "worker_cache_disk_bytes", "Size of the file system of a worker's cache: files or programs.", "cache"
)
WORKER_CACHE_DISK_FREE: Final = _gauge(
    "worker_cache_disk_free_bytes", "Free bytes of the file system of a worker's cache.", "cache"
)

# The system: counted for each scrape.
_system_gauge("queue_depth", "Jobs that are due and not running, published or not.", "band")
_system_gauge("queue_oldest_seconds", "Seconds since the oldest of these jobs became due; 0 if there is none.", "band")
_system_gauge("jobs_delayed", "Waiting jobs that are not due yet: retries, delayed and held jobs.", "band")
_system_gauge("jobs_running", "Running jobs.", "band")
_system_gauge("api_outbox_pending", "Outbox rows not yet delivered.")
_system_gauge(
    "api_outbox_oldest_seconds",
    "Seconds since the oldest undelivered outbox row was due; 0 if none is due. Failed deliveries do not reset it.",
)
_system_gauge("dead_letters", "Open dead letters.")
_system_gauge("stream_messages", "Messages in the stream, read or not.", "band")
_system_gauge("stream_pending", "Messages that were read and not acknowledged.", "band")
_system_gauge("processes_alive", "Processes with a valid lease in the registry.", "role")
_system_gauge("worker_slots", "Slots of all live workers.")
_system_gauge("worker_slots_used", "Running jobs with a valid lease.")
SYSTEM_METRICS_UP: Final = _gauge(
    "system_metrics_up",
    "1 if this process could read the metrics of the system for this scrape; 0 if not, and they are left out.",
)

# Dispatch and queues: written by the relay, the watchdog and workers.
OUTBOX_DISPATCH: Final = _counter("api_outbox_dispatch_total", "Deliveries of outbox rows.", "status", "reason")
OUTBOX_DISPATCH_LATENCY: Final = _histogram(
    "api_outbox_dispatch_latency_seconds",
    "Seconds from when an outbox row was due to its delivery.",
    buckets=_LONG_SECONDS,
)
JOBS_ENQUEUED: Final = _counter("jobs_enqueued_total", "Jobs created, by kind.", "kind")
JOBS_STARTED: Final = _counter("jobs_started_total", "Job attempts started, by kind.", "kind")
STREAM_FULL: Final = _gauge(
    "stream_full", "1 while dispatch to a priority band is paused because its stream is at capacity.", "band"
)
QUEUE_WAIT: Final = _histogram(
    "queue_wait_seconds", "Seconds from the creation of a job to its first start.", "kind", buckets=_LONG_SECONDS
)
JOB_FAILURES: Final = _counter(
    "job_failures_total",
    "Failed jobs and rejected submissions, by class: compile, contestant, problem, task, infrastructure.",
    "kind",
    "class",
)
JOB_ATTEMPT_FAILURES: Final = _counter(
    "job_attempt_failures_total", "Attempts that ended with an error, by error code.", "kind", "code"
)
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


class _SystemCollector(Collector):
    """The metrics of the system, as Prometheus families."""

    def __init__(self, gauges: Mapping[str, Mapping[str, float]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[GaugeMetricFamily]:
        for metric in ALL_METRICS:
            values = self._gauges.get(metric.name.removeprefix(PREFIX)) if metric.is_of_system else None
            if values is not None:
                family = GaugeMetricFamily(metric.name, metric.purpose, labels=metric.labels)
                for labels, value in values.items():
                    family.add_metric([part.partition("=")[2] for part in labels.split(",") if part], value)
                yield family


def render_metrics(system: Mapping[str, Mapping[str, float]] | None) -> bytes:
    """All metrics in the Prometheus text format; ``system`` are those of the system, None if they are unknown."""
    SYSTEM_METRICS_UP.set(system is not None)
    return generate_latest(REGISTRY) + generate_latest(_SystemCollector(system or {}))
