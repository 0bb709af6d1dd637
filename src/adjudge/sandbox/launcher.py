"""One launcher process and the socket to it: start it, send a run, read its report, stop it.

Nothing here decides what to do when a launcher fails; ``pool`` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import mmap
import os
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adjudge.domain.errors import AdjudgeError, Unavailable
from adjudge.sandbox.egress import forward_egress
from adjudge.sandbox.report import REPORT_BYTES_MAX, MemorySource, SandboxFault, SandboxRunReport, parse_report
from adjudge.sandbox.request_packet import CANCEL_MESSAGE, RequestPacket, check_executable_exists
from adjudge.sandbox.spec import EGRESS_MAX, SandboxRunSpec

BINARY: Final = Path(__file__).parent / "bin" / "adjudge-box"
READY_TIMEOUT_SEC: Final = 20.0
STOP_TIMEOUT_SEC: Final = 5.0
TICK_SEC: Final = 1.0
REPORT_GRACE_SEC: Final = 15.0
"""How long beyond its wall limit a run may go unreported before the launcher counts as hung."""


class LauncherDied(AdjudgeError):
    """The launcher ended, or hung, instead of reporting."""

    code = "LAUNCHER_DIED"


class LauncherRefused(AdjudgeError):
    """The launcher could not make a box."""

    code = "LAUNCHER_REFUSED"

    def __init__(self, fault: SandboxFault) -> None:
        self.fault = fault
        super().__init__(f"The launcher could not make a box: {fault}.")


class NoCgroup(Unavailable):
    """No cgroup can be used here, so that nothing limits the memory and CPU time of a program."""

    code = "NO_CGROUP"
    retryable = False

    def __init__(self) -> None:
        super().__init__(
            "No cgroup can be used here, so that nothing limits the memory and CPU time of a program, and untrusted "
            "programs are refused. Run Adjudge as root, or in a cgroup that is delegated to this user (`adjudge "
            "doctor` says how). If you trust every program that runs here, set ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true "
            "(judge.allow_without_cgroup)."
        )


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a launcher could set up on this machine."""

    slot: int
    uid: int
    rootless: bool
    """We are an ordinary user: programs run in a user namespace of ours."""
    has_proc: bool
    memory_source: MemorySource

    def __str__(self) -> str:
        """In a few words, for a list of workers."""
        return f"{'user namespace' if self.rootless else 'root'}, {self.memory_source}"


@dataclass(frozen=True, slots=True)
class LauncherOptions:
    """How launchers are started."""

    stdout_limit_bytes: int
    stderr_limit_bytes: int
    state_dir: Path
    cpu: int | None = None


def default_state_dir() -> Path:
    """Where slots are locked: one place per user, so that all of a user's sandboxes agree on who has which."""
    if os.geteuid() == 0:
        return Path("/run/adjudge")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "adjudge"
    return Path(tempfile.gettempdir()) / f"adjudge-{os.geteuid()}"


def close_all(fds: list[int]) -> None:
    """Close descriptors, once each."""
    while fds:
        os.close(fds.pop())


def _blame(spec: SandboxRunSpec, fault: SandboxFault) -> None:
    if fault.step == "file" and 0 <= fault.index < len(spec.files):
        check_executable_exists(spec.files[fault.index])


class CaptureBuffer:
    """An anonymous file of fixed size, mapped here. Programs never see it, so it may serve one run after another."""

    def __init__(self, stdout_bytes: int, stderr_bytes: int) -> None:
        self._stdout_bytes = stdout_bytes
        size = stdout_bytes + stderr_bytes + 1
        self.fd = os.memfd_create("capture", os.MFD_CLOEXEC)
        try:
            # Allocated by us, so that kept output is never charged to a program.
            os.posix_fallocate(self.fd, 0, size)
            self._memory = mmap.mmap(self.fd, size)
        except BaseException:
            os.close(self.fd)
            raise

    def read(self, stdout_bytes: int, stderr_bytes: int) -> tuple[bytes, bytes]:
        """What was kept of the two streams."""
        start = self._stdout_bytes
        return self._memory[:stdout_bytes], self._memory[start : start + stderr_bytes]

    def close(self) -> None:
        """Let go of it."""
        self._memory.close()
        os.close(self.fd)


class Launcher:
    """A running ``adjudge-box`` and our end of its socket."""

    def __init__(self, options: LauncherOptions, *, once: bool, capture: CaptureBuffer | None = None) -> None:
        if not os.access(BINARY, os.X_OK):
            raise Unavailable(
                f"Sandbox launcher {BINARY} not found: install a C compiler (gcc), then run "
                "`python hatch_build.py` in a checkout, or reinstall the package."
            )
        self._options = options
        self._waiter: asyncio.Future[bytes] | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._patience_seconds = 0.0
        self._seconds_left = 0.0
        self._expects_listeners = False
        self._closed = False
        self._greeted = False
        self._unclaimed = b""
        self._listeners: list[socket.socket] = []
        self.alive = True
        """False once it hung up on us."""
        self._capture: CaptureBuffer | None = capture or CaptureBuffer(
            options.stdout_limit_bytes, options.stderr_limit_bytes
        )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = subprocess.Popen(  # noqa: S603  # argv only, our own binary
                self._argv("command" if once else "agent", theirs.fileno(), self._capture.fd),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                pass_fds=(theirs.fileno(), self._capture.fd),
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            self._capture.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ours.fileno(), self._on_readable)

    def _argv(self, mode: str, control_fd: int, capture_fd: int) -> list[str]:
        options = self._options
        argv = [str(BINARY), mode, "--control", str(control_fd), "--capture", str(capture_fd)]
        argv += ["--stdout-bytes", str(options.stdout_limit_bytes), "--stderr-bytes", str(options.stderr_limit_bytes)]
        argv += ["--state-dir", str(options.state_dir)]
        return argv if options.cpu is None else [*argv, "--cpu", str(options.cpu)]

    @property
    def pid(self) -> int:
        """The keeper's process id."""
        return self._process.pid

    async def wait_ready(self) -> Isolation:
        """Wait until the box stands; raises ``LauncherRefused`` with the step that failed."""
        body = json.loads(await self._next_line(READY_TIMEOUT_SEC))
        self._greeted = True
        if body["sandbox_error"]:
            raise LauncherRefused(
                SandboxFault(body["error_step"], body["error_errno"], body["error_index"], body["error"])
            )
        return Isolation(
            slot=body["slot"],
            uid=body["uid"],
            rootless=body["rootless"],
            has_proc=body["has_proc"],
            memory_source=MemorySource(body["memory_source"]),
        )

    async def run(self, spec: SandboxRunSpec, handover: list[int]) -> SandboxRunReport:
        """Send one run and wait for its report; a cancelled wait must be followed by ``abort``.

        ``handover`` are descriptors that only the launcher shall hold from then on. A launcher that was just started
        need not have said hello yet: the run waits in its socket meanwhile.
        """
        self._expects_listeners = bool(spec.egress)
        packet = RequestPacket(spec)
        try:
            message = packet.message()
            while not self._send(message, packet.fds):  # noqa: ASYNC110  # a full socket, which no event tells of
                await asyncio.sleep(0.001)
        finally:
            packet.close()
        if handover:
            close_all(handover)
        if not self._greeted:
            await self.wait_ready()
        seconds = spec.limits.wall_ms / 1000 + REPORT_GRACE_SEC
        line = await (self._run_with_egress(spec, seconds) if spec.egress else self._expect(seconds))
        self._waiter = None
        report, stdout_bytes, stderr_bytes = parse_report(
            line, job_id=spec.job_id, attempt_id=spec.attempt_id, collect=spec.collect
        )
        if report.sandbox_error is not None:
            _blame(spec, report.sandbox_error)
        if self._capture is None or not (stdout_bytes or stderr_bytes):
            return report
        stdout, stderr = self._capture.read(stdout_bytes, stderr_bytes)
        return report._replace(stdout=stdout, stderr=stderr)

    def detach_capture(self) -> CaptureBuffer | None:
        """Hand the capture on to the next launcher: after an orderly report nothing is put there any more."""
        capture, self._capture = self._capture, None
        return capture

    async def _run_with_egress(self, spec: SandboxRunSpec, seconds: float) -> bytes:
        """The launcher first hands over its listeners, unless it failed before that; then its report comes."""
        first = await self._next_line(READY_TIMEOUT_SEC)
        async with forward_egress(spec.egress, self._listeners):
            return await self._next_line(seconds) if self._listeners else first

    async def abort(self) -> None:
        """Kill the run that is on and wait until nothing of it is left."""
        if self._closed:
            return
        answered = self._has_answered()
        if not self._greeted or not self.alive:
            # Its next line would be the hello: whether the run has begun is not known. Or no line will come.
            await self.close()
            return
        if self._unclaimed or answered:
            # The report had come in the very moment of the cancelling: the run is over, no other line will come.
            self._unclaimed, self._waiter = b"", None
            return
        with contextlib.suppress(OSError):
            self._socket.send(CANCEL_MESSAGE)
        with contextlib.suppress(LauncherDied):
            await self._next_line(STOP_TIMEOUT_SEC)
            return
        await self.close()

    def _has_answered(self) -> bool:
        waiter = self._waiter
        return waiter is not None and waiter.done() and not waiter.cancelled() and waiter.exception() is None

    async def close(self) -> None:
        """Hang up; the launcher kills what runs, cleans up and ends. One that does not is killed."""
        self._hang_up()
        if self._process.poll() is None and not await self._wait_for_end(STOP_TIMEOUT_SEC):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._wait_for_end(STOP_TIMEOUT_SEC)
        self._process.wait(0 if self._process.poll() is not None else STOP_TIMEOUT_SEC)

    def _hang_up(self) -> None:
        if self._closed:
            return
        self._closed, self.alive = True, False
        for listener in self._listeners:
            listener.close()
        if self._clock is not None:
            self._clock.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self._capture is not None:
            self._capture.close()
        self._fail("hung up")

    async def _wait_for_end(self, seconds: float) -> bool:
        try:
            pidfd = os.pidfd_open(self._process.pid)
        except ProcessLookupError:
            return True
        ended = asyncio.Event()
        self._loop.add_reader(pidfd, ended.set)
        try:
            async with asyncio.timeout(seconds):  # wait_for of 3.11 may take an order to stop for an end
                await ended.wait()
        except TimeoutError:
            return False
        finally:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
        return True

    def _send(self, message: bytes, fds: list[int]) -> bool:
        """False: its socket is full."""
        try:
            if fds:
                socket.send_fds(self._socket, [message], fds)
            else:
                self._socket.send(message)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LauncherDied(f"Launcher socket closed: {error.strerror}.") from error
        return True

    async def _next_line(self, seconds: float) -> bytes:
        line = await self._expect(seconds)
        self._waiter = None
        return line

    def _expect(self, seconds: float) -> asyncio.Future[bytes]:
        """The next line, to be awaited at once; it is claimed when the waiter is gone."""
        if self._closed or not (self.alive or self._unclaimed):
            raise LauncherDied("The launcher is closed, or has ended.")
        self._waiter = waiter = self._loop.create_future()
        if self._unclaimed:  # the hello, come while a request was being sent; a report, while ways out were opened
            waiter.set_result(self._unclaimed)
            self._unclaimed = b""
        self._patience_seconds = seconds
        self._seconds_left = seconds + TICK_SEC
        if self._clock is None:
            self._clock = self._loop.call_later(TICK_SEC, self._on_tick)
        return waiter

    def _on_tick(self) -> None:
        """Patience is counted by one slow clock: a timer of its own for every run would cost more than the waiting."""
        self._clock = None
        if self._waiter is None or self._waiter.done():
            return
        self._seconds_left -= TICK_SEC
        if self._seconds_left <= 0:
            self._fail(f"no report after {self._patience_seconds:.0f} s")
        else:
            self._clock = self._loop.call_later(TICK_SEC, self._on_tick)

    def _fail(self, reason: str) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(LauncherDied(f"The launcher did not report: {reason}."))

    def _on_readable(self) -> None:
        try:
            line = self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            line = b""
        if not line:
            self.alive = False
            self._loop.remove_reader(self._socket.fileno())
            self._fail("it ended")
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(line)
        else:
            # Nobody waits yet, or no longer: cancelled, and the abort must learn that the run is over.
            self._unclaimed = line

    def _receive(self) -> bytes:
        if not self._expects_listeners:
            return self._socket.recv(REPORT_BYTES_MAX)
        line, fds, _, _ = socket.recv_fds(self._socket, REPORT_BYTES_MAX, EGRESS_MAX)
        self._listeners += [socket.socket(fileno=fd) for fd in fds]
        return line
