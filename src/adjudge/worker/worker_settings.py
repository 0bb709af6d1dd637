"""The settings of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adjudge.domain.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options of a worker."""

    name: str
    slots: int
    consumer: str = ""
    """Its name as a reader of the stream; empty: the same."""
    lease_ms: int = 15_000
    heartbeat_ms: int = 4_000
    reclaim_interval_ms: int = 2_000
    reclaim_grace_ms: int = 2_000
    reclaim_count: int = 16
    drain_grace_ms: int = 30_000
    read_wait_ms: int = 2_000
    deadline_ms: int = 6 * 3_600_000
    """The longest time of one attempt, also of a job without a deadline of its own."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """How many jobs at once may use a limited thing: ``{"language:java": 1, "kind:node": 4}``."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
