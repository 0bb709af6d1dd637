"""The real commands, each in a process of its own that dies at a given point.

``adjudge worker`` and ``adjudge scheduler`` run as they are, with their settings from the environment. Only the doors
of the process, the database and the stream that the command opens, are counted on the way. Nothing of this is in the
product: no variable, option or hook of it can arm a point.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from adjudge.cli import main as adjudge
from adjudge.cli import scheduler, worker
from adjudge.cli.wiring import worker as worker_wiring
from tests.chaos.crashing_process import CrashingDatabase, CrashingStream, CrashPoint, CrashTrigger

T = TypeVar("T")
_CHILDREN = multiprocessing.get_context("forkserver")


@dataclass(frozen=True, slots=True)
class CrashingCommand:
    """What one process is to run."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    dies_at: CrashPoint | None = None


def main(command: CrashingCommand) -> None:
    """Be that command."""
    os.environ.clear()
    os.environ.update(command.environment)
    with command.log.open("a") as log:
        sys.stdout = sys.stderr = log
        _arm(CrashTrigger(command.dies_at))
        adjudge([*command.argv], prog_name="adjudge")


def _arm(crash_trigger: CrashTrigger) -> None:
    """Count what passes through whatever database and stream the commands open, the keeper's of leases too."""
    _replace(worker_wiring, "open_for_leases", lambda it: CrashingDatabase(it, crash_trigger))
    for module in (worker, scheduler):
        _replace(module, "open_served", lambda it: CrashingDatabase(it, crash_trigger))
        _replace(module, "open_stream", lambda it: CrashingStream(it, crash_trigger))


def _replace(module: ModuleType, opening: str, around: Callable[[Any], Any]) -> None:
    vars(module)[opening] = _mortal(vars(module)[opening], around)


def _mortal(
    opening: Callable[..., AbstractAsyncContextManager[Any]], around: Callable[[Any], T]
) -> Callable[..., AbstractAsyncContextManager[T]]:
    @asynccontextmanager
    async def opened(*given: Any, **named: Any) -> AsyncIterator[T]:
        async with opening(*given, **named) as inner:
            yield around(inner)

    return opened


@contextmanager
def run_command(command: CrashingCommand) -> Iterator[ForkServerProcess]:
    """The command's process while the block lasts; it is gone afterwards, whatever state it was in."""
    process = _CHILDREN.Process(target=main, args=(command,), daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()
        process.close()
