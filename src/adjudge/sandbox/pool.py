"""The sandbox: a pool of slots, each with its agent, and the command as the fallback.

An agent that crashes or refuses costs its slot nothing but speed: the run is done (again) by the command, one process
per run, its report says ``degraded``, and after a while a run tries an agent again. Only a run on open descriptors,
which may be half used up, cannot be done again: it is reported as our fault.
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
"""How long a slot goes on with the command before it tries an agent again."""


@dataclass(slots=True)
class _Slot:
    """One place to run in. At most one run uses it at a time."""

    options: LauncherOptions
    agent: Launcher | None = None
    retry_at: float = 0.0
    spare: CaptureBuffer | None = None
    """Of the last command that reported: making one takes longer than many a run."""
    failure: str = ""
    """Why it has no agent."""
    is_degraded: bool = False
    """Whether the log says so."""


class Sandbox:
    """Runs programs in boxes, ``slots`` at a time.

    ::

        async with Sandbox(slots=2) as box:
            report = await box.run(RunSpec(argv=("/usr/bin/python3", "-c", "print(6 * 7)")))

    ``pin_cpus`` gives every slot a CPU of its own, in turn. ``use_agent=False`` runs everything by the command. Without
    a cgroup nothing limits the memory and CPU time of a whole process tree: there, only ``unsafe=True`` starts.
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
            raise InvalidInput(f"slots: {slots} is too few; give at least 1.", field="slots")
        self.use_agent = use_agent
        self.unsafe = unsafe
        self.metrics: SandboxMetrics = metrics or NullSandboxMetrics()
        self.isolation: Isolation | None = None
        """What the first launcher could set up here; known once the sandbox is entered."""
        options = LauncherOptions(stdout_limit_bytes, stderr_limit_bytes, state_dir or default_state_dir())
        cpus: list[int | None] = list(pin_cpus) if pin_cpus else [None]
        self._all = [_Slot(replace(options, cpu=cpus[index % len(cpus)])) for index in range(slots)]
        self._idle = list(self._all)
        self._queue: deque[asyncio.Future[_Slot]] = deque()
        """Who waits for a slot, first come first served; while anybody does, no slot is idle."""
        self._together = asyncio.Lock()
        self._settling: set[asyncio.Task[None]] = set()

    @property
    def slots(self) -> int:
        """How many runs can be on at once."""
        return len(self._all)

    @property
    def is_degraded(self) -> bool:
        """Whether some slot runs programs the slow way, because its agent died and has not come back."""
        return self.use_agent and any(slot.agent is None for slot in self._all)

    async def __aenter__(self) -> Self:
        """Start the agents; raises ``Unavailable`` where no box can be made, with the step that failed."""
        try:
            if self.use_agent:
                await asyncio.gather(*(self._start_agent(slot) for slot in self._all))
            if all(slot.agent is None for slot in self._all):
                await self._probe_command()
            self._refuse_without_cgroup()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the agents; nothing of a run is left."""
        await self.close()

    async def close(self) -> None:
        """Stop everything; calling it twice is fine."""
        while self._settling:
            await asyncio.wait(self._settling)
        agents = [slot.agent for slot in self._all if slot.agent is not None]
        for slot in self._all:
            slot.agent = None
        await asyncio.gather(*(agent.close() for agent in agents))
        for slot in self._all:
            if slot.spare is not None:
                slot.spare.close()
                slot.spare = None

    async def run(self, spec: SandboxRunSpec) -> SandboxRunReport:
        """Run one program. Cancelling kills it completely before the slot is used again."""
        slot = self._idle.pop() if self._idle else await self._wait_for_slot()
        return await self._run_in(slot, spec, [])

    async def run_interactive(
        self, contestant: SandboxRunSpec, interactor: SandboxRunSpec
    ) -> tuple[SandboxRunReport, SandboxRunReport, int]:
        """Run two programs joined by pipes; the third value is 0 where the contestant ended first, else 1.

        Their stdin and stdout are replaced; limits, stderr and everything else stay their own. A sandbox of one slot
        lends the interactor a box for the occasion.
        """
        if contestant.egress or interactor.egress:
            raise InvalidInput("egress: not for interactive runs.", field="egress")
        async with self.reserve_slots(2) as (first, second):
            to_contestant, to_interactor = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
            ends = [to_contestant[0], to_interactor[1]], [to_interactor[0], to_contestant[1]]
            one = replace(contestant, stdin=to_contestant[0], stdout=to_interactor[1])
            two = replace(interactor, stdin=to_interactor[0], stdout=to_contestant[1])
            try:
                left, right = await gather_or_cancel(first.run(one, ends[0]), second.run(two, ends[1]))
            finally:
                close_all(ends[0] + ends[1])  # of runs that were cancelled before they began
        return left, right, 0 if left.ended_ns <= right.ended_ns else 1

    @asynccontextmanager
    async def reserve_slots(self, count: int) -> AsyncIterator[list[ReservedSlot]]:
        """Hold places for programs that must all run at the same time; beyond its slots the sandbox lends boxes."""
        seats = [
            ReservedSlot(partial(self._run_in, slot), partial(self._release, slot)) for slot in await self._take(count)
        ]
        try:
            yield seats
        finally:
            for seat in seats:
                seat.release()

    async def _take(self, count: int) -> list[_Slot]:
        """Places at once; taken under a lock, so that two takers never hold some each and wait forever."""
        own = min(count, self.slots)
        held: list[_Slot] = []
        async with self._together:
            try:
                while len(held) < own:
                    held.append(self._idle.pop() if self._idle else await self._wait_for_slot())
            except BaseException:
                for slot in held:
                    self._hand_on(slot)
                raise
            lent = [_Slot(self._all[0].options, retry_at=float("inf")) for _ in range(count - own)]
            return held + lent

    async def _wait_for_slot(self) -> _Slot:
        waiter: asyncio.Future[_Slot] = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # given in the very moment of the cancelling
                self._hand_on(waiter.result())
            raise

    def _hand_on(self, slot: _Slot) -> None:
        """Give a slot to whoever waits longest; those whose waiting was cancelled are passed over."""
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(slot)
                return
        self._idle.append(slot)

    async def _run_in(self, slot: _Slot, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        """Run in a place that was taken; ``handover`` are descriptors to close once the launcher has its copies."""
        started = time.monotonic()
        result = "error"
        self.metrics.exec_started()
        try:
            report = self._believed(await self._run_somehow(slot, spec, handover))
            result = _result_label(report)
            for stream, truncated in (("stdout", report.stdout_truncated), ("stderr", report.stderr_truncated)):
                if truncated:
                    self.metrics.output_truncated(stream)
            return report
        finally:
            close_all(handover)
            self.metrics.exec_finished(result, time.monotonic() - started)
            self._release(slot)

    def _believed(self, report: SandboxRunReport) -> SandboxRunReport:
        """Refuse what was measured without a cgroup, should it have gone after the start."""
        if self.unsafe or report.memory_source is not MemorySource.RLIMIT or report.verdict is SandboxVerdict.SE:
            return report
        return fault_report(SandboxFault("cgroup", 0, -1, NoCgroup().message), report.job_id, report.attempt_id)

    def _release(self, slot: _Slot) -> None:
        """A slot whose run was cancelled comes back when nothing of the run is left."""
        task = self._settling_of(slot) if self._settling else None
        if task is not None:
            task.add_done_callback(lambda _: self._release(slot))
        elif slot in self._all:
            self._hand_on(slot)
        elif slot.spare is not None:
            slot.spare.close()

    def _settling_of(self, slot: _Slot) -> asyncio.Task[None] | None:
        return next((task for task in self._settling if task.get_name() == _task_name(slot) and not task.done()), None)

    async def _run_somehow(self, slot: _Slot, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        if not self.use_agent or spec.egress or slot.retry_at == float("inf"):
            return await self._run_by_command(slot, spec, handover)
        if slot.agent is not None and not slot.agent.alive:
            await self._drop_agent(slot)
        elif slot.agent is None and time.monotonic() >= slot.retry_at:
            await self._start_agent(slot)
        reason = "no_agent"
        if slot.agent is not None:
            try:
                return await self._exchange(slot, slot.agent, spec, handover)
            except LauncherDied as error:
                reason, slot.failure = "agent_died", error.message
                await self._drop_agent(slot)
                if not _replayable(spec):
                    fault = SandboxFault("agent", 0, -1, error.message)
                    return fault_report(fault, spec.job_id, spec.attempt_id)
        self._note_degraded(slot, reason)
        report = await self._run_by_command(slot, spec, handover)
        return report._replace(degraded=True)

    def _note_degraded(self, slot: _Slot, reason: str) -> None:
        """Count the run, and log the first one that does without an agent."""
        self.metrics.degraded(reason)
        if not slot.is_degraded:
            slot.is_degraded = True
            _log.warning("sandbox_degraded", reason=reason, error=slot.failure, slot=self._all.index(slot))

    async def _run_by_command(self, slot: _Slot, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        capture, slot.spare = slot.spare, None
        launcher = Launcher(slot.options, once=True, capture=capture)
        try:
            report = await self._exchange(slot, launcher, spec, handover)
            if report.verdict is not SandboxVerdict.SE:
                slot.spare = launcher.detach_capture()
            return report
        except LauncherRefused as error:
            return fault_report(error.fault, spec.job_id, spec.attempt_id)
        except LauncherDied as error:
            return fault_report(SandboxFault("launcher", 0, -1, error.message), spec.job_id, spec.attempt_id)
        finally:
            self._settle(None, launcher.close())  # the box is empty already; only its walls come down

    async def _exchange(
        self, slot: _Slot, launcher: Launcher, spec: SandboxRunSpec, handover: list[int]
    ) -> SandboxRunReport:
        """One run by one launcher; a report that breaks the protocol is a fault of ours, counted by reason."""
        try:
            return await launcher.run(spec, handover)
        except asyncio.CancelledError:
            await asyncio.shield(self._settle(slot, launcher.abort()))
            raise
        except ProtocolError as error:
            self.metrics.protocol_error(error.reason)
            _log.error(
                "sandbox_protocol_error",
                reason=str(error.reason),
                error=error.message,
                job_id=spec.job_id,
                attempt_id=spec.attempt_id,
            )
            if launcher is slot.agent:
                await self._drop_agent(slot)  # whatever it says next cannot be believed either
            fault = SandboxFault("report", 0, -1, error.message)
            return fault_report(fault, spec.job_id, spec.attempt_id)

    def _settle(self, slot: _Slot | None, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Clean-up that goes on even when its waiter is cancelled again; the slot waits for it."""
        task = asyncio.create_task(work, name=_task_name(slot))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        return task

    async def _start_agent(self, slot: _Slot) -> None:
        agent = Launcher(slot.options, once=False)
        try:
            isolation = await agent.wait_ready()
        except (LauncherRefused, LauncherDied) as error:
            await asyncio.shield(self._settle(slot, agent.close()))
            slot.retry_at, slot.failure = time.monotonic() + AGENT_RETRY_SEC, error.message
        except BaseException:
            await asyncio.shield(self._settle(slot, agent.close()))
            raise
        else:
            slot.agent = agent
            if slot.is_degraded:
                slot.is_degraded = False
                _log.info("sandbox_agent_restored", slot=self._all.index(slot))
            self.isolation = self.isolation or isolation

    async def _drop_agent(self, slot: _Slot) -> None:
        agent, slot.agent = slot.agent, None
        slot.retry_at = time.monotonic() + AGENT_RETRY_SEC
        if agent is not None:
            await asyncio.shield(self._settle(slot, agent.close()))

    def _refuse_without_cgroup(self) -> None:
        """Memory that is not a process's own, and children that nobody waits for, would be limited by nothing."""
        if not self.unsafe and self.isolation and self.isolation.memory_source is MemorySource.RLIMIT:
            raise NoCgroup

    async def _probe_command(self) -> None:
        """Whether a box can be made at all; said at the start rather than by the first run."""
        launcher = Launcher(self._all[0].options, once=True)
        try:
            self.isolation = await launcher.wait_ready()
        except (LauncherRefused, LauncherDied) as error:
            raise Unavailable(f"No sandbox can be made here. {error.message} `adjudge doctor` says more.") from error
        finally:
            await asyncio.shield(self._settle(None, launcher.close()))


def _task_name(slot: _Slot | None) -> str:
    return f"sandbox-settle-{id(slot)}"


def _replayable(spec: SandboxRunSpec) -> bool:
    return not any(isinstance(stream, int) for stream in (spec.stdin, spec.stdout, spec.stderr))


def _result_label(report: SandboxRunReport) -> str:
    if report.verdict is SandboxVerdict.OK:
        return "ok"
    if report.verdict is SandboxVerdict.SE:
        return "error"
    return "timeout" if report.limit in (LimitKind.CPU, LimitKind.WALL) else "reject"
