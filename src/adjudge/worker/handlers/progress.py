"""Writes the progress of running jobs, many reports in one transaction, without delaying the jobs.

A handler requests a reporter and reports its progress. Only the latest report of each job is kept. A ``Batcher`` writes
new reports of all jobs of the worker together, at most once per interval. Reports that cannot be written are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self

from adjudge.concurrency.batcher import Batcher
from adjudge.domain.errors import AdjudgeError
from adjudge.observe.logs import get_logger
from adjudge.store import Database
from adjudge.store.jobs import progress
from adjudge.store.jobs.models import Fence, Job

_log = get_logger(__name__)
MAX_STEPS: Final = 32
"""The number of latest steps that are stored."""


class ProgressReporter(Protocol):
    """Receives the progress of one job."""

    def report(self, stage: str, done: int = 0, total: int = 0, *, step: Mapping[str, Any] | None = None) -> None:
        """Report progress; ``step`` describes what was just done. It must be small and contain no test data."""
        ...


class ProgressWriter:
    """Writes the reports of one worker; as a context manager, writes the last ones before the block ends."""

    def __init__(self, database: Database, *, worker: str, interval_ms: int = 200) -> None:
        self._database = database
        self._worker = worker
        self._batcher: Batcher[progress.ProgressReport, None] = Batcher(
            self._write, name="progress", pause_sec=interval_ms / 1_000, key=lambda report: report.fence
        )

    def reporter(self, job: Job) -> ProgressReporter:
        """The reporter of a job that this worker has claimed."""
        return _JobReporter(self, Fence(job.id, job.attempt_id, self._worker))

    def put(self, report: progress.ProgressReport) -> None:
        """Keep the latest report of a job until it is written."""
        self._batcher.offer(report)

    async def flush(self) -> None:
        """Wait until all new reports are written or dropped."""
        await self._batcher.flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._batcher.flush()

    async def _write(self, reports: Sequence[progress.ProgressReport]) -> list[None]:
        try:
            await self._database.transact(lambda tx: progress.write(tx, reports))
        except AdjudgeError as error:
            _log.debug("progress_write_failed", error=error.message, jobs=len(reports))
        return [None] * len(reports)


class _JobReporter:
    def __init__(self, writer: ProgressWriter, fence: Fence) -> None:
        self._writer = writer
        self._fence = fence
        self._tail: deque[Mapping[str, Any]] = deque(maxlen=MAX_STEPS)

    def report(self, stage: str, done: int = 0, total: int = 0, *, step: Mapping[str, Any] | None = None) -> None:
        if step is not None:
            self._tail.append(step)
        self._writer.put(progress.ProgressReport(self._fence, stage, done, total, tuple(self._tail)))


class _NullProgressReporter:
    def report(self, stage: str, done: int = 0, total: int = 0, *, step: Mapping[str, Any] | None = None) -> None:
        """Ignore the report."""


NULL_PROGRESS_REPORTER: Final[ProgressReporter] = _NullProgressReporter()
