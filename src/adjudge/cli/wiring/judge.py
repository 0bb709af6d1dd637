"""Putting the judge together for a command: the sandbox, the languages and the cache, from settings."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from adjudge import settings as settings_source
from adjudge.judge.compile import COMPILATIONS_MAX
from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.exclusive_gate import ExclusiveGate
from adjudge.judge.languages import Languages
from adjudge.judge.pipeline import Judge
from adjudge.observe import metrics
from adjudge.sandbox import Sandbox
from adjudge.settings import Settings


def load_languages() -> Languages:
    """The languages with the changes of the settings; toolchains are also searched on the PATH of the caller."""
    overlay = settings_source.load().judge.languages_file
    return Languages.load(os.get_exec_path(), Path(overlay).expanduser() if overlay else None)


class PrometheusSandboxMetrics:
    """Counts sandbox events in the metrics of the process."""

    def protocol_error(self, reason: str) -> None:
        """A report that cannot be believed."""
        metrics.JUDGE_PROTOCOL_ERRORS.labels(reason).inc()

    def output_truncated(self, stream: str) -> None:
        """An output cut at its limit."""
        metrics.JUDGE_OUTPUT_TRUNCATED.labels(stream).inc()

    def exec_started(self) -> None:
        """A program began to run."""
        metrics.JUDGE_EXEC_INFLIGHT.inc()

    def exec_finished(self, result: str, seconds: float) -> None:
        metrics.JUDGE_EXEC_INFLIGHT.dec()
        metrics.JUDGE_EXEC.labels(result).inc()
        metrics.JUDGE_EXEC_DURATION.labels(result).observe(seconds)

    def degraded(self, reason: str) -> None:
        """It ran the slow way."""
        metrics.SANDBOX_DEGRADED.labels(reason).inc()


def make_sandbox(settings: Settings, slots: int, *, trusted: bool = False) -> Sandbox:
    """A sandbox as the settings want it; ``trusted``: it will only run programs of this machine."""
    return Sandbox(
        slots=slots,
        pin_cpus=sorted(os.sched_getaffinity(0)) if settings.worker.pin_cpus else None,
        metrics=PrometheusSandboxMetrics(),
        stdout_limit_bytes=settings.judge.stdout_limit_bytes,
        stderr_limit_bytes=settings.judge.stderr_limit_bytes,
        use_agent=settings.judge.use_agent,
        unsafe=trusted or settings.judge.allow_without_cgroup,
    )


@asynccontextmanager
async def open_judge(slots: int) -> AsyncIterator[Judge]:
    """A judge with as many slots, gone afterwards."""
    settings = settings_source.load()
    cache = CompileCache(settings.judge.cache_dir.expanduser(), settings.judge.cache_bytes)
    async with make_sandbox(settings, slots) as box:
        quiet = ExclusiveGate(executions_apart=not settings.worker.executions_beside_judging)
        yield Judge(
            box,
            load_languages(),
            cache,
            worker=socket.gethostname(),
            exclusive_gate=quiet,
            artifact_bytes=settings.judge.artifact_bytes,
            compilations=settings.judge.compilations or COMPILATIONS_MAX,
        )
