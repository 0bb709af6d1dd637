"""The sandbox: a pool of slots, each with an agent, and with the command as fallback.

If an agent crashes or cannot start, the run is executed (again) by the command, with one process per run; its report
has ``degraded`` set. A later run starts a new agent. A run on open descriptors cannot be repeated, because they may be
partly consumed: it gets verdict SE.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.observe.logs import get_logger
from adjudge.sandbox.launcher import (
    CaptureBuffer,
    Isolation,
    Launcher,
    LauncherDied,
    LauncherOptions,
    LauncherRefused,
    NoCgroup,
    close_all,
    default_state_dir,
)
from adjudge.sandbox.metrics import NullSandboxMetrics, SandboxMetrics
from adjudge.sandbox.report import (
    LimitKind,
    MemorySource,
    ProtocolError,
    SandboxFault,
    SandboxRunReport,
    SandboxVerdict,
    fault_report,
)
from adjudge.sandbox.reserved_slot import ReservedSlot, gather_or_cancel
from adjudge.sandbox.spec import SandboxRunSpec

_log = get_logger(__name__)

STDOUT_LIMIT_BYTES: Final = 262_144
STDERR_LIMIT_BYTES: Final = 1_048_576
AGENT_RETRY_SEC: Final = 2.0
"""Time until a slot without an agent tries to start one."""


@dataclass(slots=True)
class _Slot:
    """A slot of the sandbox, used by at most one run at a time."""

    options: LauncherOptions
    agent: Launcher | None = None
    retry_at: float = 0.0
    spare_capture: CaptureBuffer | None = None
    """Reused from the last command, because creating one takes longer than a short run."""
    failure: str = ""
    """Why the slot has no agent."""
    is_degraded: bool = False
    """Whether the degradation was logged."""


class Sandbox:
    """Runs programs in isolation, up to ``slots`` at a time.

    ::

        async with Sandbox(slots=2) as sandbox:
            report = await sandbox.run(SandboxRunSpec(argv=("/usr/bin/python3", "-c", "print(6 * 7)")))

    ``pin_cpus`` assigns a CPU to each slot, round-robin. ``use_agent=False`` uses the command for all runs. Without a
    cgroup, memory and CPU time of a process tree cannot be limited, so the sandbox starts only with ``unsafe=True``.
    """

    def __init__(
        self,
        *,
        slots: int = 1,
        pin_cpus: Sequence[int] | None = None,
        stdout_limit_bytes: int = STDOUT_LIMIT_BYTES,
        stderr_limit_bytes: int = STDERR_LIMIT_BYTES,
        use_agent: bool = True,
        metrics: SandboxMetrics | None = None,
        state_dir: Path | None = None,
        unsafe: bool = False,
    ) -> None:
        if slots < 1:
            raise InvalidInput(f"slots: must be at least 1, not {slots}.", field="slots")
        self.use_agent = use_agent
        self.unsafe = unsafe
        self.metrics: SandboxMetrics = metrics or NullSandboxMetrics()
        self.isolation: Isolation | None = None
        """Isolation reported by the first launcher; set when the sandbox is entered."""
        options = LauncherOptions(stdout_limit_bytes, stderr_limit_bytes, state_dir or default_state_dir())
        cpus: list[int | None] = list(pin_cpus) if pin_cpus else [None]
        self._all = [_Slot(replace(options, cpu=cpus[index % len(cpus)])) for index in range(slots)]
        self._idle = list(self._all)
        self._queue: deque[asyncio.Future[_Slot]] = deque()
        """Waiters in FIFO order; if there are any, no slot is idle."""
        self._reserve_lock = asyncio.Lock()
        self._cleanups: set[asyncio.Task[None]] = set()

    @property
    def slots(self) -> int:
        """Number of concurrent runs."""
        return len(self._all)

    @property
    def is_degraded(self) -> bool:
        """Whether some slot has no agent and uses the command."""
        return self.use_agent and any(slot.agent is None for slot in self._all)

    async def __aenter__(self) -> Self:
        """Start the agents; raises ``Unavailable`` with the failed step if no sandbox can be created."""
        try:
            if self.use_agent:
                await asyncio.gather(*(self._start_agent(slot) for slot in self._all))
            if all(slot.agent is None for slot in self._all):
                await self._probe_command()
            self._reject_without_cgroup()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the agents and clean up all runs."""
        await self.close()

    async def close(self) -> None:
        """Stop everything; idempotent."""
        while self._cleanups:
            await asyncio.wait(self._cleanups)
        agents = [slot.agent for slot in self._all if slot.agent is not None]
        for slot in self._all:
            slot.agent = None
        await asyncio.gather(*(agent.close() for agent in agents))
        for slot in self._all:
            if slot.spare_capture is not None:
                slot.spare_capture.close()
                slot.spare_capture = None

    async def run(self, spec: SandboxRunSpec) -> SandboxRunReport:
        """Run one program. Cancellation kills all its processes before the slot is used again."""
        slot = self._idle.pop() if self._idle else await self._wait_for_slot()
        return await self._run_in(slot, spec, [])

    async def run_interactive(
        self, contestant: SandboxRunSpec, interactor: SandboxRunSpec
    ) -> tuple[SandboxRunReport, SandboxRunReport, int]:
        """Run two programs connected by pipes; the third value is 0 if the contestant ended first, else 1.

        Their stdin and stdout are replaced; everything else is as specified. With a single slot, the interactor runs in
        a temporary slot.
        """
        if contestant.egress or interactor.egress:
            raise InvalidInput("egress: not supported for interactive runs.", field="egress")
        async with self.reserve_slots(2) as (first, second):
            to_contestant, to_interactor = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
            ends = [to_contestant[0], to_interactor[1]], [to_interactor[0], to_contestant[1]]
            one = replace(contestant, stdin=to_contestant[0], stdout=to_interactor[1])
            two = replace(interactor, stdin=to_interactor[0], stdout=to_contestant[1])
            try:
                left, right = await gather_or_cancel(first.run(one, ends[0]), second.run(two, ends[1]))
            finally:
                close_all(ends[0] + ends[1])  # of runs that were canceled before they started
        return left, right, 0 if left.ended_ns <= right.ended_ns else 1

    @asynccontextmanager
    async def reserve_slots(self, count: int) -> AsyncIterator[list[ReservedSlot]]:
        """Reserve slots for programs that must run at the same time; temporary slots are added if there are too few."""
        reserved = [
            ReservedSlot(partial(self._run_in, slot), partial(self._release, slot))
            for slot in await self._acquire(count)
        ]
        try:
            yield reserved
        finally:
            for slot in reserved:
                slot.release()

    async def _acquire(self, count: int) -> list[_Slot]:
        """Acquire several slots. Under a lock: otherwise two callers could each hold some slots and deadlock."""
        own = min(count, self.slots)
        held: list[_Slot] = []
        async with self._reserve_lock:
            try:
                while len(held) < own:
                    held.append(self._idle.pop() if self._idle else await self._wait_for_slot())
            except BaseException:
                for slot in held:
                    self._pass_on(slot)
                raise
            temporary = [_Slot(self._all[0].options, retry_at=float("inf")) for _ in range(count - own)]
            return held + temporary

    async def _wait_for_slot(self) -> _Slot:
        waiter: asyncio.Future[_Slot] = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # race: assigned together with the cancellation
                self._pass_on(waiter.result())
            raise

    def _pass_on(self, slot: _Slot) -> None:
        """Give a slot to the first waiter that was not canceled, or make it idle."""
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(slot)
                return
        self._idle.append(slot)

    async def _run_in(self, slot: _Slot, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        """Run in an acquired slot; ``handover`` are descriptors to close once they are sent to the launcher."""
        started = time.monotonic()
        result = "error"
        self.metrics.exec_started()
        try:
            report = self._require_cgroup(await self._run_with_fallback(slot, spec, handover))
            result = _result_label(report)
            for stream, truncated in (("stdout", report.stdout_truncated), ("stderr", report.stderr_truncated)):
                if truncated:
                    self.metrics.output_truncated(stream)
            return report
        finally:
            close_all(handover)
            self.metrics.exec_finished(result, time.monotonic() - started)
            self._release(slot)

    def _require_cgroup(self, report: SandboxRunReport) -> SandboxRunReport:
        """Turn a report without a cgroup into a system error, in case the cgroup disappeared after the start."""
        if self.unsafe or report.memory_source is not MemorySource.RLIMIT or report.verdict is SandboxVerdict.SE:
            return report
        return fault_report(SandboxFault("cgroup", 0, -1, NoCgroup().message), report.job_id, report.attempt_id)

    def _release(self, slot: _Slot) -> None:
        """Release a slot; after a cancellation, only when the run is cleaned up."""
        task = self._cleanup_of(slot) if self._cleanups else None
        if task is not None:
            task.add_done_callback(lambda _: self._release(slot))
        elif slot in self._all:
            self._pass_on(slot)
        elif slot.spare_capture is not None:
            slot.spare_capture.close()

    def _cleanup_of(self, slot: _Slot) -> asyncio.Task[None] | None:
        return next((task for task in self._cleanups if task.get_name() == _task_name(slot) and not task.done()), None)

    async def _run_with_fallback(self, slot: _Slot, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        if not self.use_agent or spec.egress or slot.retry_at == float("inf"):
            return await self._run_by_command(slot, spec, handover)
        if slot.agent is not None and not slot.agent.alive:
            await self._stop_agent(slot)
        elif slot.agent is None and time.monotonic() >= slot.retry_at:
            await self._start_agent(slot)
        reason = "no_agent"
        if slot.agent is not None:
            try:
                return await self._exchange(slot, slot.agent, spec, handover)
            except LauncherDied as error:
                reason, slot.failure = "agent_died", error.message
                await self._stop_agent(slot)
                if not _is_repeatable(spec):
                    fault = SandboxFault("agent", 0, -1, error.message)
                    return fault_report(fault, spec.job_id, spec.attempt_id)
        self._record_degraded(slot, reason)
        report = await self._run_by_command(slot, spec, handover)
        return report._replace(degraded=True)

    def _record_degraded(self, slot: _Slot, reason: str) -> None:
        """Count the run, and log the first one without an agent."""
        self.metrics.degraded(reason)
        if not slot.is_degraded:
            slot.is_degraded = True
            _log.warning("sandbox_degraded", reason=reason, error=slot.failure, slot=self._all.index(slot))

    async def _run_by_command(self, slot: _Slot, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        capture, slot.spare_capture = slot.spare_capture, None
        launcher = Launcher(slot.options, once=True, capture=capture)
        try:
            report = await self._exchange(slot, launcher, spec, handover)
            if report.verdict is not SandboxVerdict.SE:
                slot.spare_capture = launcher.detach_capture()
            return report
        except LauncherRefused as error:
            return fault_report(error.fault, spec.job_id, spec.attempt_id)
        except LauncherDied as error:
            return fault_report(SandboxFault("launcher", 0, -1, error.message), spec.job_id, spec.attempt_id)
        finally:
            self._start_cleanup(None, launcher.close())  # no process is left; only the launcher exits

    async def _exchange(
        self, slot: _Slot, launcher: Launcher, spec: SandboxRunSpec, handover: list[int]
    ) -> SandboxRunReport:
        """Execute one run with one launcher; an invalid report becomes a system error, counted by reason."""
        try:
            return await launcher.run(spec, handover)
        except asyncio.CancelledError:
            await asyncio.shield(self._start_cleanup(slot, launcher.abort()))
            raise
        except ProtocolError as error:
            self.metrics.protocol_error(error.reason)
            _log.error(
                "sandbox_protocol_violated",
                reason=str(error.reason),
                error=error.message,
                job_id=spec.job_id,
                attempt_id=spec.attempt_id,
            )
            if launcher is slot.agent:
                await self._stop_agent(slot)  # its later reports may be invalid as well
            fault = SandboxFault("report", 0, -1, error.message)
            return fault_report(fault, spec.job_id, spec.attempt_id)

    def _start_cleanup(self, slot: _Slot | None, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start cleanup in a task, so that it continues if the caller is canceled again; the slot waits for it."""
        task = asyncio.create_task(work, name=_task_name(slot))
        self._cleanups.add(task)
        task.add_done_callback(self._cleanups.discard)
        return task

    async def _start_agent(self, slot: _Slot) -> None:
        agent = Launcher(slot.options, once=False)
        try:
            isolation = await agent.wait_ready()
        except (LauncherRefused, LauncherDied) as error:
            await asyncio.shield(self._start_cleanup(slot, agent.close()))
            slot.retry_at, slot.failure = time.monotonic() + AGENT_RETRY_SEC, error.message
        except BaseException:
            await asyncio.shield(self._start_cleanup(slot, agent.close()))
            raise
        else:
            slot.agent = agent
            if slot.is_degraded:
                slot.is_degraded = False
                _log.info("sandbox_agent_restored", slot=self._all.index(slot))
            self.isolation = self.isolation or isolation

    async def _stop_agent(self, slot: _Slot) -> None:
        agent, slot.agent = slot.agent, None
        slot.retry_at = time.monotonic() + AGENT_RETRY_SEC
        if agent is not None:
            await asyncio.shield(self._start_cleanup(slot, agent.close()))

    def _reject_without_cgroup(self) -> None:
        """Without a cgroup, shared memory and unreaped children cannot be limited."""
        if not self.unsafe and self.isolation and self.isolation.memory_source is MemorySource.RLIMIT:
            raise NoCgroup

    async def _probe_command(self) -> None:
        """Check that a sandbox can be created, so that a failure is reported at the start and not by the first run."""
        launcher = Launcher(self._all[0].options, once=True)
        try:
            self.isolation = await launcher.wait_ready()
        except (LauncherRefused, LauncherDied) as error:
            raise Unavailable(f"Cannot create a sandbox. {error.message} Run `adjudge doctor` for details.") from error
        finally:
            await asyncio.shield(self._start_cleanup(None, launcher.close()))


def _task_name(slot: _Slot | None) -> str:
    return f"sandbox-cleanup-{id(slot)}"


def _is_repeatable(spec: SandboxRunSpec) -> bool:
    return not any(isinstance(stream, int) for stream in (spec.stdin, spec.stdout, spec.stderr))


def _result_label(report: SandboxRunReport) -> str:
    if report.verdict is SandboxVerdict.OK:
        return "ok"
    if report.verdict is SandboxVerdict.SE:
        return "error"
    return "timeout" if report.limit in (LimitKind.CPU, LimitKind.WALL) else "reject"
