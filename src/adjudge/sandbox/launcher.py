"""Client of one launcher process: starts it, sends runs, reads reports, stops it.

``pool`` decides what to do when a launcher fails.
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
"""Time after the wall limit of a run without a report until the launcher is considered hung."""


class LauncherDied(AdjudgeError):
    """The launcher ended or hung instead of sending a report."""

    code = "LAUNCHER_DIED"


class LauncherRefused(AdjudgeError):
    """The launcher could not create a sandbox."""

    code = "LAUNCHER_REFUSED"

    def __init__(self, fault: SandboxFault) -> None:
        self.fault = fault
        super().__init__(f"The launcher could not create a sandbox: {fault}.")


class NoCgroup(Unavailable):
    """No usable cgroup, so memory and CPU time of a process tree cannot be limited."""

    code = "NO_CGROUP"
    retryable = False

    def __init__(self) -> None:
        super().__init__(
            "No usable cgroup: memory and CPU time of programs cannot be limited, so untrusted programs are not run. "
            "Run Adjudge as root, or in a cgroup that is delegated to this user (see `adjudge doctor`). If you trust "
            "all programs that run here, set ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true (judge.allow_without_cgroup)."
        )


@dataclass(frozen=True, slots=True)
class Isolation:
    """What isolation a launcher has set up."""

    slot: int
    uid: int
    rootless: bool
    """Adjudge runs as an unprivileged user; programs run in a user namespace."""
    has_proc: bool
    memory_source: MemorySource

    def __str__(self) -> str:
        """Short form for the list of workers."""
        return f"{'user namespace' if self.rootless else 'root'}, {self.memory_source}"


@dataclass(frozen=True, slots=True)
class LauncherOptions:
    """Arguments of a launcher process."""

    stdout_limit_bytes: int
    stderr_limit_bytes: int
    state_dir: Path
    cpu: int | None = None


def default_state_dir() -> Path:
    """Directory of the slot locks: one per user, so that all sandboxes of a user share the slot numbers."""
    if os.geteuid() == 0:
        return Path("/run/adjudge")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "adjudge"
    return Path(tempfile.gettempdir()) / f"adjudge-{os.geteuid()}"


def close_all(fds: list[int]) -> None:
    """Close all descriptors and clear the list."""
    while fds:
        os.close(fds.pop())


def _check_missing_file(spec: SandboxRunSpec, fault: SandboxFault) -> None:
    if fault.step == "file" and 0 <= fault.index < len(spec.files):
        check_executable_exists(spec.files[fault.index])


class CaptureBuffer:
    """Shared memory in which a launcher stores captured output: the bytes of stdout, then those of stderr.

    A mapped memfd of fixed size. Programs have no access to it, so it can be reused for later runs.
    """

    def __init__(self, stdout_bytes: int, stderr_bytes: int) -> None:
        self._stdout_bytes = stdout_bytes
        size = stdout_bytes + stderr_bytes + 1
        self.fd = os.memfd_create("capture", os.MFD_CLOEXEC)
        try:
            # Allocated here, so that captured output is not charged to a program's cgroup.
            os.posix_fallocate(self.fd, 0, size)
            self._memory = mmap.mmap(self.fd, size)
        except BaseException:
            os.close(self.fd)
            raise

    def read(self, stdout_bytes: int, stderr_bytes: int) -> tuple[bytes, bytes]:
        start = self._stdout_bytes
        return self._memory[:stdout_bytes], self._memory[start : start + stderr_bytes]

    def close(self) -> None:
        """Unmap and close the memfd."""
        self._memory.close()
        os.close(self.fd)


class Launcher:
    """A running ``adjudge-box`` process and the socket to it."""

    def __init__(self, options: LauncherOptions, *, once: bool, capture: CaptureBuffer | None = None) -> None:
        if not os.access(BINARY, os.X_OK):
            raise Unavailable(
                f"Sandbox launcher {BINARY} not found: install a C compiler (gcc), then run "
                "`python hatch_build.py` in a checkout, or reinstall the package."
            )
        self._options = options
        self._waiter: asyncio.Future[bytes] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timeout_sec = 0.0
        self._remaining_sec = 0.0
        self._expects_listeners = False
        self._closed = False
        self._is_ready = False
        self._unread_line = b""
        self._listeners: list[socket.socket] = []
        self.alive = True
        """False after the launcher has closed its socket."""
        self._capture: CaptureBuffer | None = capture or CaptureBuffer(
            options.stdout_limit_bytes, options.stderr_limit_bytes
        )
        client_end, launcher_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = subprocess.Popen(  # noqa: S603  # argv only, our own binary
                self._argv("command" if once else "agent", launcher_end.fileno(), self._capture.fd),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                pass_fds=(launcher_end.fileno(), self._capture.fd),
                start_new_session=True,
            )
        except BaseException:
            client_end.close()
            self._capture.close()
            raise
        finally:
            launcher_end.close()
        client_end.setblocking(False)
        self._socket = client_end
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(client_end.fileno(), self._on_readable)

    def _argv(self, mode: str, control_fd: int, capture_fd: int) -> list[str]:
        options = self._options
        argv = [str(BINARY), mode, "--control", str(control_fd), "--capture", str(capture_fd)]
        argv += ["--stdout-bytes", str(options.stdout_limit_bytes), "--stderr-bytes", str(options.stderr_limit_bytes)]
        argv += ["--state-dir", str(options.state_dir)]
        return argv if options.cpu is None else [*argv, "--cpu", str(options.cpu)]

    @property
    def pid(self) -> int:
        """Process id of the keeper."""
        return self._process.pid

    async def wait_ready(self) -> Isolation:
        """Wait until the sandbox is created; raises ``LauncherRefused`` with the failed step."""
        body = json.loads(await self._next_line(READY_TIMEOUT_SEC))
        self._is_ready = True
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
        """Send one run and wait for its report. After a cancellation, the caller must call ``abort``.

        ``handover`` are descriptors to close here once they are sent, so that only the launcher holds them. A launcher
        that was just started may not be ready yet; then the request waits in its socket.
        """
        self._expects_listeners = bool(spec.egress)
        packet = RequestPacket(spec)
        try:
            message = packet.message()
            while not self._send(message, packet.fds):  # noqa: ASYNC110  # the socket is full; there is no event to wait for
                await asyncio.sleep(0.001)
        finally:
            packet.close()
        if handover:
            close_all(handover)
        if not self._is_ready:
            await self.wait_ready()
        seconds = spec.limits.wall_ms / 1000 + REPORT_GRACE_SEC
        line = await (self._run_with_egress(spec, seconds) if spec.egress else self._expect(seconds))
        self._waiter = None
        report, stdout_bytes, stderr_bytes = parse_report(
            line, job_id=spec.job_id, attempt_id=spec.attempt_id, collect=spec.collect
        )
        if report.sandbox_error is not None:
            _check_missing_file(spec, report.sandbox_error)
        if self._capture is None or not (stdout_bytes or stderr_bytes):
            return report
        stdout, stderr = self._capture.read(stdout_bytes, stderr_bytes)
        return report._replace(stdout=stdout, stderr=stderr)

    def detach_capture(self) -> CaptureBuffer | None:
        """Release the capture buffer for the next launcher: after a report, this one does not write to it again."""
        capture, self._capture = self._capture, None
        return capture

    async def _run_with_egress(self, spec: SandboxRunSpec, seconds: float) -> bytes:
        """Receive the listeners first, unless the launcher failed before; then the report."""
        first = await self._next_line(READY_TIMEOUT_SEC)
        async with forward_egress(spec.egress, self._listeners):
            return await self._next_line(seconds) if self._listeners else first

    async def abort(self) -> None:
        """Kill the current run and wait until it is cleaned up."""
        if self._closed:
            return
        has_report = self._has_report()
        if not self._is_ready or not self.alive:
            # Not ready: the next line is the hello, so it is unknown whether the run has started. Not alive: no line.
            await self.close()
            return
        if self._unread_line or has_report:
            # Race: the report arrived together with the cancellation. The run is over, and no other line will come.
            self._unread_line, self._waiter = b"", None
            return
        with contextlib.suppress(OSError):
            self._socket.send(CANCEL_MESSAGE)
        with contextlib.suppress(LauncherDied):
            await self._next_line(STOP_TIMEOUT_SEC)
            return
        await self.close()

    def _has_report(self) -> bool:
        waiter = self._waiter
        return waiter is not None and waiter.done() and not waiter.cancelled() and waiter.exception() is None

    async def close(self) -> None:
        """Close the socket, so that the launcher kills the run, cleans up and exits; kill it if it does not."""
        self._close_socket()
        if self._process.poll() is None and not await self._wait_for_end(STOP_TIMEOUT_SEC):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._wait_for_end(STOP_TIMEOUT_SEC)
        self._process.wait(0 if self._process.poll() is not None else STOP_TIMEOUT_SEC)

    def _close_socket(self) -> None:
        if self._closed:
            return
        self._closed, self.alive = True, False
        for listener in self._listeners:
            listener.close()
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self._capture is not None:
            self._capture.close()
        self._fail("closed")

    async def _wait_for_end(self, seconds: float) -> bool:
        try:
            pidfd = os.pidfd_open(self._process.pid)
        except ProcessLookupError:
            return True
        ended = asyncio.Event()
        self._loop.add_reader(pidfd, ended.set)
        try:
            async with asyncio.timeout(seconds):  # in 3.11, wait_for may swallow a cancellation
                await ended.wait()
        except TimeoutError:
            return False
        finally:
            self._loop.remove_reader(pidfd)
            os.close(pidfd)
        return True

    def _send(self, message: bytes, fds: list[int]) -> bool:
        """Return False if the socket is full."""
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
        """Return a future of the next line; the caller awaits it and then clears ``_waiter``."""
        if self._closed or not (self.alive or self._unread_line):
            raise LauncherDied("The launcher is closed or has ended.")
        self._waiter = waiter = self._loop.create_future()
        if self._unread_line:  # hello during send, or report during egress setup
            waiter.set_result(self._unread_line)
            self._unread_line = b""
        self._timeout_sec = seconds
        self._remaining_sec = seconds + TICK_SEC
        if self._timer is None:
            self._timer = self._loop.call_later(TICK_SEC, self._on_tick)
        return waiter

    def _on_tick(self) -> None:
        """Check the timeout once per tick: a timer per run would cost more than the wait."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        self._remaining_sec -= TICK_SEC
        if self._remaining_sec <= 0:
            self._fail(f"no report after {self._timeout_sec:.0f} s")
        else:
            self._timer = self._loop.call_later(TICK_SEC, self._on_tick)

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
            # No waiter yet, or it was canceled: then ``abort`` must know that the run is over.
            self._unread_line = line

    def _receive(self) -> bytes:
        if not self._expects_listeners:
            return self._socket.recv(REPORT_BYTES_MAX)
        line, fds, _, _ = socket.recv_fds(self._socket, REPORT_BYTES_MAX, EGRESS_MAX)
        self._listeners += [socket.socket(fileno=fd) for fd in fds]
        return line
