"""What the sandbox counts, as a protocol: who composes the program decides where the counts go."""

from __future__ import annotations

from typing import Protocol


class SandboxMetrics(Protocol):
    """Counters the sandbox calls; each is cheap and never raises."""

    def protocol_error(self, reason: str) -> None:
        """``judge_protocol_errors_total{reason}``."""

    def output_truncated(self, stream: str) -> None:
        """``judge_output_truncated_total{stream}``; stream is ``stdout`` or ``stderr``."""

    def exec_started(self) -> None:
        """``judge_exec_inflight`` goes up."""

    def exec_finished(self, result: str, seconds: float) -> None:
        """``judge_exec_inflight`` goes down; ``judge_exec_total`` and ``…_duration_seconds`` by result.

        The result is ``ok``, ``reject`` (a limit or a crash of theirs), ``timeout`` or ``error`` (ours).
        """

    def degraded(self, reason: str) -> None:
        """Count a run that fell back from the agent to the command."""


class NullSandboxMetrics:
    """Counts nothing."""

    def protocol_error(self, reason: str) -> None:
        """Count nothing."""

    def output_truncated(self, stream: str) -> None:
        """Count nothing."""

    def exec_started(self) -> None:
        """Count nothing."""

    def exec_finished(self, result: str, seconds: float) -> None:
        """Count nothing."""

    def degraded(self, reason: str) -> None:
        """Count nothing."""
