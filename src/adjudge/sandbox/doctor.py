"""Checks what isolation the host provides, from kernel files and by running a probe in the sandbox.

Output and languages are in ``cli/doctor.py``. The sandbox itself refuses to run untrusted code without isolation.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from adjudge.domain.errors import AdjudgeError
from adjudge.domain.limits import KIB, MIB, Limits
from adjudge.sandbox.pool import Sandbox
from adjudge.sandbox.report import MemorySource, SandboxRunReport, SandboxVerdict
from adjudge.sandbox.spec import SandboxRunSpec

CGROUP_USE: Final = "cgroup accounting"


class HostCheckState(StrEnum):
    """Result of one check."""

    OK = "ok"
    DEGRADED = "degraded"
    """Works, with less accuracy or weaker limits."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One check with its result."""

    name: str
    state: HostCheckState
    observed: str
    consequence: str
    fix: str = ""
    is_required: bool = False
    """Untrusted code must not run if this is missing."""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """All checks of a host."""

    checks: tuple[HostCheck, ...]

    @property
    def may_run_untrusted(self) -> bool:
        """Whether untrusted code is safe to run."""
        return not self.obstacles()

    def obstacles(self, *, allow_without_cgroup: bool = False) -> tuple[HostCheck, ...]:
        """Required checks that failed; ``allow_without_cgroup`` ignores the cgroup."""
        missing = (check for check in self.checks if check.is_required and check.state is HostCheckState.MISSING)
        return tuple(check for check in missing if not (allow_without_cgroup and check.name == CGROUP_USE))


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Access to kernel files and programs of the host; tests replace the root directory."""

    root: Path = Path("/")
    is_root: bool = False
    find_program: Callable[[str], str | None] = shutil.which
    may_write: Callable[[Path], bool] = _may_write

    @classmethod
    def here(cls) -> HostFacts:
        """The machine that this process runs on."""
        return cls(is_root=os.geteuid() == 0)

    def read(self, path: str) -> str | None:
        """Return the stripped text of a kernel file, or None if it does not exist."""
        with suppress(OSError):
            return (self.root / path.lstrip("/")).read_text(errors="replace").strip()
        return None

    def writable(self, path: str) -> bool:
        """Whether this process may write a file or a directory."""
        return self.may_write(self.root / path.lstrip("/"))

    def glob(self, pattern: str) -> list[Path]:
        """Return matching paths, sorted."""
        return sorted(self.root.glob(pattern.lstrip("/")))


async def run_checks(machine: HostFacts | None = None, state_dir: Path | None = None) -> DoctorReport:
    here = machine or HostFacts.here()
    host = [check(here) for check in _HOST_CHECKS]
    probed = await probe(state_dir)
    return DoctorReport((*probed, *host))


# --- probe: what a program in the sandbox sees ---

_CANARY: Final = "canary-of-the-doctor"
_PROBE_FILES: Final = ("/proc/self/status", "/proc/self/mountinfo", "/proc/net/dev")
_PROBE_LIMITS: Final = Limits(cpu_ms=1_000, wall_ms=5_000, memory_bytes=64 * MIB, processes=4, output_bytes=256 * KIB)


async def probe(state_dir: Path | None = None) -> list[HostCheck]:
    """Run a program that prints its own status and tries to read a secret of the host."""
    with tempfile.TemporaryDirectory(prefix="adjudge-doctor-") as folder:
        secret = Path(folder) / "secret"
        await asyncio.to_thread(_write_secret, secret)
        argv = ("/bin/cat", *_PROBE_FILES, str(secret))
        try:
            async with Sandbox(slots=1, state_dir=state_dir, unsafe=True) as sandbox:
                report = await sandbox.run(SandboxRunSpec(argv=argv, limits=_PROBE_LIMITS))
        except (AdjudgeError, OSError) as error:
            return [_no_launcher(str(error))]
    if report.verdict is SandboxVerdict.SE:
        return [_no_launcher(str(report.sandbox_error))]
    return [
        _launcher_runs(report),
        *check_isolation(report.stdout.decode(errors="replace")),
        _cgroup_accounting(report),
    ]


def _write_secret(secret: Path) -> None:
    secret.write_text(_CANARY)
    secret.parent.chmod(0o755)
    secret.chmod(0o644)


def _no_launcher(why: str) -> HostCheck:
    return HostCheck(
        "launcher",
        HostCheckState.MISSING,
        why,
        "Programs cannot be sandboxed on this machine.",
        "If the launcher is missing, install a C compiler and reinstall the package (`pip install .`). If it is"
        " installed, the error above names the step that failed; see docs/how-to/prepare-a-host.md.",
        is_required=True,
    )


def _launcher_runs(report: SandboxRunReport) -> HostCheck:
    if report.degraded:
        return HostCheck(
            "launcher",
            HostCheckState.DEGRADED,
            "agent did not start; falling back to one process per run",
            "Runs start more slowly. Isolation is the same.",
            "See the agent's error in the log.",
        )
    return HostCheck(
        "launcher", HostCheckState.OK, f"probe finished in {report.wall_ms} ms", "The sandbox can run programs."
    )


def check_isolation(seen: str) -> list[HostCheck]:
    """Check isolation by the output of the probe; all of these are required."""
    about, _, network = seen.partition("Inter-|")
    status = dict(re.findall(r"^(\w+):[ \t]*(.*)$", about, re.MULTILINE))
    devices = set(re.findall(r"^ *([\w.-]+):", network, re.MULTILINE))
    pid = int(status.get("Pid") or 0)
    uids = status.get("Uid", "0").split()
    sets = [int(status.get(name) or "1", 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
    return [
        _isolation("mount namespace", pid > 0 and _CANARY not in seen, "host files", "CONFIG_NAMESPACES"),
        _isolation("pid namespace", 0 < pid < 1_000, "other processes", "CONFIG_PID_NS"),
        _isolation("network namespace", bool(network) and devices <= {"lo"}, "the network", "CONFIG_NET_NS"),
        _isolation("seccomp", status.get("Seccomp") == "2", "dangerous system calls", "CONFIG_SECCOMP_FILTER"),
        _isolation("privileges", status.get("NoNewPrivs") == "1" and not any(sets), "capabilities", "CONFIG_MULTIUSER"),
        _isolation("user", "0" not in uids, "root privileges", "CONFIG_USER_NS (not needed as root)"),
    ]


def _isolation(name: str, holds: bool, subject: str, option: str) -> HostCheck:
    if holds:
        return HostCheck(name, HostCheckState.OK, "verified from inside the sandbox", f"Isolated: {subject}.")
    meaning = f"Not isolated: {subject}. Do not run untrusted code."
    fix = f"Use a kernel with {option}; in a container, allow it. See docs/how-to/prepare-a-host.md."
    return HostCheck(name, HostCheckState.MISSING, "not effective", meaning, fix, is_required=True)


def _cgroup_accounting(report: SandboxRunReport) -> HostCheck:
    source = report.memory_source
    if source is MemorySource.RLIMIT:
        return HostCheck(
            CGROUP_USE,
            HostCheckState.MISSING,
            "no cgroup can be used; usage is sampled, limits are rlimits",
            "Not limited: shared anonymous memory and socket buffers (beyond any memory limit), and the CPU time of"
            " unreaped children (up to the wall limit). Judging is refused.",
            "Run as root, or delegate a cgroup v2 subtree to this user: a systemd unit with Delegate=yes, or"
            " `systemd-run --user --scope -p Delegate=yes make up`. Only for programs that you trust:"
            " ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true.",
            is_required=True,
        )
    return HostCheck(
        CGROUP_USE, HostCheckState.OK, str(source), "Memory, CPU time and process counts are measured by the kernel."
    )


# --- host checks ---


def check_user_namespaces(machine: HostFacts) -> HostCheck:
    """Required for unprivileged users, not for root."""
    meaning = "Unprivileged users need user namespaces for the sandbox."
    most = machine.read("/proc/sys/user/max_user_namespaces")
    switch = machine.read("/proc/sys/kernel/unprivileged_userns_clone")
    confined = machine.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if most in (None, "0"):
        fix = "sysctl -w user.max_user_namespaces=10000, on a kernel with CONFIG_USER_NS."
        return HostCheck("user namespaces", _unless_root(machine), "disabled", meaning, fix)
    if switch == "0":
        fix = "sysctl -w kernel.unprivileged_userns_clone=1, or run as root."
        return HostCheck("user namespaces", _unless_root(machine), "disabled for unprivileged users", meaning, fix)
    if confined == "1":
        fix = (
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, an AppArmor profile with userns, or run as root."
        )
        return HostCheck("user namespaces", _unless_root(machine), "restricted by AppArmor", meaning, fix)
    return HostCheck("user namespaces", HostCheckState.OK, f"enabled (limit {most})", meaning)


def _unless_root(machine: HostFacts) -> HostCheckState:
    return HostCheckState.DEGRADED if machine.is_root else HostCheckState.MISSING


def check_cgroups(machine: HostFacts) -> HostCheck:
    """Cgroup version and required controllers."""
    meaning = "Cgroups measure and limit whole process trees."
    needed = {"memory", "pids", "cpu"}
    v2 = set((machine.read("/sys/fs/cgroup/cgroup.controllers") or "").split())
    if needed <= v2:
        return HostCheck("cgroup version", HostCheckState.OK, "v2: " + " ".join(sorted(v2)), meaning)
    v1 = {path.name for path in machine.glob("/sys/fs/cgroup/*") if (path / "tasks").exists()}
    if {"memory", "pids", "cpuacct"} <= {part for name in v1 for part in name.split(",")}:
        return HostCheck("cgroup version", HostCheckState.OK, "v1: " + " ".join(sorted(v1)), meaning)
    return HostCheck(
        "cgroup version",
        HostCheckState.DEGRADED,
        "v2 without " + " ".join(sorted(needed - v2)) if v2 else "no usable hierarchy",
        meaning,
        "Mount cgroup v2 at /sys/fs/cgroup with the memory, pids and cpu controllers (the default with systemd).",
    )


def check_seccomp(machine: HostFacts) -> HostCheck:
    """Kernel support for the system call filter."""
    actions = machine.read("/proc/sys/kernel/seccomp/actions_avail")
    if actions is None:
        fix = "Use a kernel with CONFIG_SECCOMP_FILTER."
        return HostCheck(
            "seccomp support", HostCheckState.MISSING, "none", "System call filtering is not available.", fix
        )
    return HostCheck("seccomp support", HostCheckState.OK, actions, "System call filtering is available.")


def _advice(name: str, meaning: str, *, problem: str, fine: str, fix: str) -> HostCheck:
    """A check of something that makes measurements less accurate; ``problem`` is empty if there is none."""
    if problem:
        return HostCheck(name, HostCheckState.DEGRADED, problem, meaning, fix)
    return HostCheck(name, HostCheckState.OK, fine, meaning)


def check_swap(machine: HostFacts) -> HostCheck:
    """Swap makes memory and time measurements inaccurate."""
    areas = (machine.read("/proc/swaps") or "").splitlines()[1:]
    meaning = "Swapping makes times unpredictable and memory measurements too low."
    problem = f"{len(areas)} swap area(s) active" if areas else ""
    return _advice("swap", meaning, problem=problem, fine="none", fix="swapoff -a")


def check_smt(machine: HostFacts) -> HostCheck:
    """Programs on sibling threads of a core slow each other down."""
    meaning = "Hyper-threading: two programs on one core slow each other down by up to half."
    problem = "active" if machine.read("/sys/devices/system/cpu/smt/active") == "1" else ""
    fix = "echo off > /sys/devices/system/cpu/smt/control, or pin slots to CPUs of different cores (pin_cpus)."
    return _advice("SMT", meaning, problem=problem, fine="inactive", fix=fix)


def check_frequency(machine: HostFacts) -> HostCheck:
    """A variable clock frequency makes CPU times vary."""
    meaning = "CPU time of the same work varies with the clock frequency."
    files = machine.glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    governors = {str(machine.read(str(path.relative_to(machine.root)))) for path in files}
    fine = "governor performance" if governors else "no control on this host"
    problem = "" if governors <= {"performance"} else "governor " + " ".join(sorted(governors))
    fix = "cpupower frequency-set -g performance"
    return _advice("frequency scaling", meaning, problem=problem, fine=fine, fix=fix)


def check_turbo(machine: HostFacts) -> HostCheck:
    """With turbo, the clock frequency depends on the number of busy cores."""
    meaning = "The clock frequency, and so the CPU time, depends on how many cores are busy."
    intel, boost = "/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/devices/system/cpu/cpufreq/boost"
    problem = "on" if machine.read(intel) == "0" or machine.read(boost) == "1" else ""
    fix = f"echo 1 > {intel}, or echo 0 > {boost}"
    return _advice("turbo", meaning, problem=problem, fine="off, or no control on this host", fix=fix)


def check_huge_pages(machine: HostFacts) -> HostCheck:
    """Huge pages round memory measurements up."""
    meaning = "With huge pages always on, one touched byte may count as 2 MiB."
    setting = "/sys/kernel/mm/transparent_hugepage/enabled"
    problem = "always" if "[always]" in (machine.read(setting) or "") else ""
    return _advice("huge pages", meaning, problem=problem, fine="madvise or never", fix=f"echo madvise > {setting}")


def check_compiler(machine: HostFacts) -> HostCheck:
    """A C compiler, for the build and for most languages."""
    meaning = "Needed for C and C++ submissions, checkers and the launcher build."
    path = next(filter(None, map(machine.find_program, ("cc", "gcc", "clang"))), "")
    fix = "Install gcc and g++ (Debian: apt install g++)."
    return _advice("compiler", meaning, problem="" if path else "none", fine=path, fix=fix)


_HOST_CHECKS: Final[tuple[Callable[[HostFacts], HostCheck], ...]] = (
    check_user_namespaces,
    check_cgroups,
    check_seccomp,
    check_swap,
    check_smt,
    check_frequency,
    check_turbo,
    check_huge_pages,
    check_compiler,
)
