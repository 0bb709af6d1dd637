"""Metrics of the sandbox as a protocol, so that the package does not depend on a metrics library."""

from __future__ import annotations

from typing import Protocol


class SandboxMetrics(Protocol):
    """Metrics that the sandbox updates. Implementations must be fast and must not raise."""

    def protocol_error(self, reason: str) -> None:
        """``judge_protocol_errors_total{reason}``."""

    def output_truncated(self, stream: str) -> None:
        """``judge_output_truncated_total{stream}``; stream is ``stdout`` or ``stderr``."""

    def exec_started(self) -> None:
        """Increments ``judge_exec_inflight``."""

    def exec_finished(self, result: str, seconds: float) -> None:
        """Decrements ``judge_exec_inflight``; records ``judge_exec_total`` and ``…_duration_seconds`` by result.

        The result is ``ok``, ``timeout``, ``reject`` (other limit, or a crash) or ``error`` (system error).
        """

    def degraded(self, reason: str) -> None:
        """Count a run that fell back from the agent to the command."""


class NullSandboxMetrics:
    """Discards all metrics."""

    def protocol_error(self, reason: str) -> None:
        """Do nothing."""

    def output_truncated(self, stream: str) -> None:
        """Do nothing."""

    def exec_started(self) -> None:
        """Do nothing."""

    def exec_finished(self, result: str, seconds: float) -> None:
        """Do nothing."""

    def degraded(self, reason: str) -> None:
        """Do nothing."""
