"""The board that running jobs write their progress on: many reports, one transaction, never in anybody's way.

A handler asks for a reporter and says how far it is; saying so only keeps the latest word. A ``Batcher`` writes what
is new, for all jobs of the worker at once and at most every so often. What could not be written is dropped.
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
"""How many of the last steps are shown."""


class ProgressReporter(Protocol):
    """Where one job says how far it is."""

    def report(self, stage: str, done: int = 0, total: int = 0, *, step: Mapping[str, Any] | None = None) -> None:
        """Say it; ``step`` is what was just done, small and free of test data."""
        ...


class ProgressWriter:
    """The reports of one worker; used as a context, it writes the last of them before the block ends."""

    def __init__(self, database: Database, *, worker: str, interval_ms: int = 200) -> None:
        self._database = database
        self._worker = worker
        self._batcher: Batcher[progress.ProgressReport, None] = Batcher(
            self._write, name="progress", pause_sec=interval_ms / 1_000, key=lambda report: report.fence
        )

    def reporter(self, job: Job) -> ProgressReporter:
        """The reporter of a job that this worker holds."""
        return _JobReporter(self, Fence(job.id, job.attempt_id, self._worker))

    def put(self, report: progress.ProgressReport) -> None:
        """Keep the latest word of a job until it is written."""
        self._batcher.offer(report)

    async def flush(self) -> None:
        """Wait until what is new is written or dropped."""
        await self._batcher.flush()

    async def __aenter__(self) -> Self:
        """Nothing to begin."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what is left."""
        await self._batcher.flush()

    async def _write(self, reports: Sequence[progress.ProgressReport]) -> list[None]:
        try:
            await self._database.transact(lambda tx: progress.write(tx, reports))
        except AdjudgeError as error:
            _log.debug("progress_write_failed", error=error.message, jobs=len(reports))
        return [None] * len(reports)


class _JobReporter:
    def __init__(self, board: ProgressWriter, fence: Fence) -> None:
        self._board = board
        self._fence = fence
        self._tail: deque[Mapping[str, Any]] = deque(maxlen=MAX_STEPS)

    def report(self, stage: str, done: int = 0, total: int = 0, *, step: Mapping[str, Any] | None = None) -> None:
        if step is not None:
            self._tail.append(step)
        self._board.put(progress.ProgressReport(self._fence, stage, done, total, tuple(self._tail)))


class _NullProgressReporter:
    def report(self, stage: str, done: int = 0, total: int = 0, *, step: Mapping[str, Any] | None = None) -> None:
        """Nobody watches."""


NULL_PROGRESS_REPORTER: Final[ProgressReporter] = _NullProgressReporter()
