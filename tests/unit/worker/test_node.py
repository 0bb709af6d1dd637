"""Running nodes get stop requests, even if the polling fails meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from adjudge.store import Database
from adjudge.worker.handlers.stop_watcher import ChainRunStopWatcher


class FailingDatabase:
    """A database whose first answer is a fault that nobody foresaw."""

    def __init__(self, stopping: set[str]) -> None:
        self._answers: list[set[str] | Exception] = [RuntimeError("a fault of ours"), stopping]

    def listen(self, _channel: str, _callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    async def read(self, _operation: Callable[[Any], Any]) -> set[str]:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_failed_stop_check_keeps_watching_running_nodes() -> None:
    watch = ChainRunStopWatcher(cast("Database", FailingDatabase({"run"})), poll_ms=1)
    with watch.watch_run("run") as stop:
        async with asyncio.timeout(120):
            await stop.wait()
    assert stop.is_set(), "by the look after the one that failed"
