"""The measured systems: each is a few processes with a progress file; they read what to submit as lines."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import peers
from bench.queue_progress import SharedProgress

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "procrastinate": ("procrastinate", "psycopg[binary]"),
    "Celery": ("celery[redis]",),
    "arq": ("arq",),
}
"""What brings each peer, by package name."""
_LIMIT_SEC = 120.0
_LOOK_SEC = 0.002


def install(peer: str) -> str:
    """Install one of these peers; gives the reason where it cannot be had."""
    return peers.install(peer, PACKAGES[peer])


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """How a contender is started: a module run by an interpreter, once for each of its roles."""

    name: str
    python: str
    module: str
    roles: tuple[str, ...]
    """In the order of starting; the last one takes the commands."""
    addresses: tuple[str, ...]


def peer_recipe(peer: str, address: str, roles: tuple[str, ...] = ("worker", "submitter")) -> SystemSpec:
    return SystemSpec(peer, str(peers.python_of(peer)), f"bench.queue_{peer.lower()}", roles, (address,))


class QueueSystem:
    """A running queue. Its progress is read from its progress file.

    Making one starts its processes and does not wait for them, so that several may start at the same time.
    """

    def __init__(self, recipe: SystemSpec, folder: Path, stack: ExitStack) -> None:
        self.name = recipe.name
        path = folder / f"{recipe.name}.board"
        self.board = SharedProgress(path)
        self._errors = folder / f"{recipe.name}.log"
        self._next = 0
        self._processes = [self._start(recipe, role, path, stack) for role in recipe.roles]
        self._submitter = self._processes[-1]

    def wait_ready(self) -> None:
        """Wait until every process says that it can begin."""
        for process in self._processes:
            self._expect(process, "ready")

    def _start(self, recipe: SystemSpec, role: str, board: Path, stack: ExitStack) -> subprocess.Popen[str]:
        argv = [recipe.python, "-m", recipe.module, role, str(board), *recipe.addresses]
        errors = stack.enter_context(self._errors.open("a"))
        process = subprocess.Popen(
            argv,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # ended together with what it may have started itself
        )
        stack.callback(_end, process)
        return process

    def _expect(self, process: subprocess.Popen[str], word: str) -> None:
        """Wait for a word; a library's own greetings are passed over."""
        for line in _lines(process.stdout):
            if line.strip() == word:
                return
        raise RuntimeError(f"{self.name}: a process ended instead of saying {word}: {self._last_words()}")

    def _last_words(self) -> str:
        return self._errors.read_text(errors="replace")[-2_000:]

    def _tell(self, how: str, count: int, *more: int) -> int:
        first, self._next = self._next, self._next + count
        assert self._submitter.stdin is not None
        self._submitter.stdin.write(" ".join(map(str, (how, first, count, *more))) + "\n")
        self._submitter.stdin.flush()
        return first

    def _wait_done(self, first: int, count: int) -> None:
        limit = time.perf_counter() + _LIMIT_SEC
        while (done := self.board.done_of(first, count)) < count:
            if time.perf_counter() > limit:
                raise RuntimeError(
                    f"{self.name}: {done} of {count} jobs done in {_LIMIT_SEC:g} s: {self._last_words()}"
                )
            time.sleep(_LOOK_SEC)

    def rate(self, count: int) -> float:
        """Jobs per second, from the first one's submit to the last one's end, both at once."""
        began = time.perf_counter()
        first = self._tell("burst", count)
        self._wait_done(first, count)
        took = time.perf_counter() - began
        self._expect(self._submitter, "ok")
        return count / took

    def waits_ms(self, count: int, gap_ms: int) -> list[float]:
        """From commit to start, of jobs submitted one at a time, so far apart that none waits for another."""
        first = self._tell("spaced", count, gap_ms)
        self._expect(self._submitter, "ok")
        self._wait_done(first, count)
        return self.board.waits_ms(first, count)

    def submit(self, count: int) -> None:
        """Hand jobs in and return when they are committed."""
        self._tell("burst", count)
        self._expect(self._submitter, "ok")


def quantile(ordered: Sequence[float], part: float) -> float:
    """The smallest figure that at least ``part`` of all reach."""
    return ordered[min(len(ordered) - 1, max(0, -(-int(part * 1_000) * len(ordered) // 1_000) - 1))]


def _lines(pipe: Any) -> Any:
    assert pipe is not None
    return iter(pipe.readline, "")


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
