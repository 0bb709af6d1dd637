"""What isolation holds on this machine, found by looking at it and by really running a probe in the box.

What belongs here: facts about the host and what they mean for judging. What does not: printing, and which languages can
be judged (``cli/doctor.py``); the refusal to run untrusted code, which is the sandbox's own.
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
    """How well one thing stands."""

    OK = "ok"
    DEGRADED = "degraded"
    """It works, but less exactly or less strictly than it could."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One row of the diagnosis."""

    name: str
    state: HostCheckState
    observed: str
    consequence: str
    fix: str = ""
    is_required: bool = False
    """Untrusted code may not run while this is missing."""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Every row, and what follows from them."""

    checks: tuple[HostCheck, ...]

    @property
    def may_run_untrusted(self) -> bool:
        """Whether hostile code can be let in."""
        return not self.obstacles()

    def obstacles(self, *, allow_without_cgroup: bool = False) -> tuple[HostCheck, ...]:
        """What must be fixed before anything is judged here; the operator may do without a cgroup."""
        missing = (check for check in self.checks if check.is_required and check.state is HostCheckState.MISSING)
        return tuple(check for check in missing if not (allow_without_cgroup and check.name == CGROUP_USE))


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Where facts of the host are read: its file system from a root, which tests replace."""

    root: Path = Path("/")
    is_root: bool = False
    find_program: Callable[[str], str | None] = shutil.which

    def read(self, path: str) -> str | None:
        """A small kernel file without its final newline, or None where there is none."""
        with suppress(OSError):
            return (self.root / path.lstrip("/")).read_text(errors="replace").strip()
        return None

    def glob(self, pattern: str) -> list[Path]:
        """Paths that match, sorted."""
        return sorted(self.root.glob(pattern.lstrip("/")))


async def run_checks(machine: HostFacts | None = None, state_dir: Path | None = None) -> DoctorReport:
    """Look at the host and run the probe."""
    here = machine or HostFacts(is_root=os.geteuid() == 0)
    host = [check(here) for check in _HOST_CHECKS]
    probed = await probe(state_dir)
    return DoctorReport((*probed, *host))


# --- the probe: what a program in the box really sees ---

_CANARY: Final = "canary-of-the-doctor"
_PROBE_FILES: Final = ("/proc/self/status", "/proc/self/mountinfo", "/proc/net/dev")
_PROBE_LIMITS: Final = Limits(cpu_ms=1_000, wall_ms=5_000, memory_bytes=64 * MIB, processes=4, output_bytes=256 * KIB)


async def probe(state_dir: Path | None = None) -> list[HostCheck]:
    """Run a reader of its own status in the box, with a secret on the host that it must not find."""
    with tempfile.TemporaryDirectory(prefix="adjudge-doctor-") as folder:
        secret = Path(folder) / "secret"
        await asyncio.to_thread(_plant, secret)
        argv = ("/bin/cat", *_PROBE_FILES, str(secret))
        try:
            async with Sandbox(slots=1, state_dir=state_dir, unsafe=True) as box:
                report = await box.run(SandboxRunSpec(argv=argv, limits=_PROBE_LIMITS))
        except (AdjudgeError, OSError) as error:
            return [_no_launcher(str(error))]
    if report.verdict is SandboxVerdict.SE:
        return [_no_launcher(str(report.sandbox_error))]
    return [_launcher_runs(report), *check_isolation(report.stdout.decode(errors="replace")), _figures(report)]


def _plant(secret: Path) -> None:
    secret.write_text(_CANARY)
    secret.parent.chmod(0o755)
    secret.chmod(0o644)


def _no_launcher(why: str) -> HostCheck:
    return HostCheck(
        "launcher",
        HostCheckState.MISSING,
        why,
        "Programs cannot be sandboxed on this machine.",
        "Install a C compiler and build the package again (`pip install .`); if it is built, the text on the left says"
        " which step the kernel refused: see docs/how-to/prepare-a-host.md.",
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
    """Judge what a program in the box saw of itself and of the host; each of these must hold."""
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
    fix = f"A kernel with {option}; in a container, one that does not forbid it: see docs/how-to/prepare-a-host.md."
    return HostCheck(name, HostCheckState.MISSING, "not effective", meaning, fix, is_required=True)


def _figures(report: SandboxRunReport) -> HostCheck:
    source = report.memory_source
    if source is MemorySource.RLIMIT:
        return HostCheck(
            CGROUP_USE,
            HostCheckState.MISSING,
            "no cgroup can be used; usage is sampled, limits are rlimits",
            "Not limited: shared anonymous memory and socket buffers (beyond any memory limit), and the CPU time of"
            " children that nobody waits for (up to the wall limit). Judging is refused.",
            "Run as root, or delegate a cgroup v2 subtree to this user: a systemd unit with Delegate=yes, or"
            " `systemd-run --user --scope -p Delegate=yes make up`. Only for programs that you trust:"
            " ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true.",
            is_required=True,
        )
    return HostCheck(
        CGROUP_USE, HostCheckState.OK, str(source), "Memory, CPU time and process counts are measured by the kernel."
    )


# --- the host: what is there, and what it means ---


def check_user_namespaces(machine: HostFacts) -> HostCheck:
    """An ordinary user needs them; root does not."""
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
    """Which version there is, and whether the controllers we need are in it."""
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
    """The filter needs the kernel's support."""
    actions = machine.read("/proc/sys/kernel/seccomp/actions_avail")
    if actions is None:
        fix = "Use a kernel with CONFIG_SECCOMP_FILTER."
        return HostCheck(
            "seccomp support", HostCheckState.MISSING, "none", "System call filtering is not available.", fix
        )
    return HostCheck("seccomp support", HostCheckState.OK, actions, "System call filtering is available.")


def check_swap(machine: HostFacts) -> HostCheck:
    """Swap blurs both memory and time."""
    areas = (machine.read("/proc/swaps") or "").splitlines()[1:]
    meaning = "Swapping makes times unpredictable and memory measurements too low."
    if areas:
        return HostCheck("swap", HostCheckState.DEGRADED, f"{len(areas)} swap area(s) active", meaning, "swapoff -a")
    return HostCheck("swap", HostCheckState.OK, "none", meaning)


def check_smt(machine: HostFacts) -> HostCheck:
    """Two programs on one core slow each other."""
    meaning = "Hyper-threading: two programs on one core slow each other down by up to half."
    if machine.read("/sys/devices/system/cpu/smt/active") == "1":
        fix = "echo off > /sys/devices/system/cpu/smt/control, or pin slots to CPUs of different cores (pin_cpus)."
        return HostCheck("SMT", HostCheckState.DEGRADED, "active", meaning, fix)
    return HostCheck("SMT", HostCheckState.OK, "inactive", meaning)


def check_frequency(machine: HostFacts) -> HostCheck:
    """A clock that changes makes equal runs unequal."""
    meaning = "CPU time of the same work varies with the clock frequency."
    governors = {machine.read(str(path.relative_to(machine.root))) for path in machine.glob(
        "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")}  # fmt: skip
    if not governors:
        return HostCheck("frequency scaling", HostCheckState.OK, "no control on this host", meaning)
    if governors != {"performance"}:
        found = "governor " + " ".join(sorted(str(governor) for governor in governors))
        return HostCheck(
            "frequency scaling", HostCheckState.DEGRADED, found, meaning, "cpupower frequency-set -g performance"
        )
    return HostCheck("frequency scaling", HostCheckState.OK, "governor performance", meaning)


def check_turbo(machine: HostFacts) -> HostCheck:
    """Turbo depends on how many cores are busy."""
    meaning = "The clock frequency, and so the CPU time, depends on how many cores are busy."
    on = (
        machine.read("/sys/devices/system/cpu/intel_pstate/no_turbo") == "0"
        or machine.read("/sys/devices/system/cpu/cpufreq/boost") == "1"
    )
    if on:
        fix = (
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost"
        )
        return HostCheck("turbo", HostCheckState.DEGRADED, "on", meaning, fix)
    return HostCheck("turbo", HostCheckState.OK, "off, or no control on this host", meaning)


def check_huge_pages(machine: HostFacts) -> HostCheck:
    """Huge pages round memory figures up."""
    setting = machine.read("/sys/kernel/mm/transparent_hugepage/enabled") or ""
    meaning = "With huge pages always on, one touched byte may count as 2 MiB."
    if "[always]" in setting:
        fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        return HostCheck("huge pages", HostCheckState.DEGRADED, "always", meaning, fix)
    return HostCheck("huge pages", HostCheckState.OK, "madvise or never", meaning)


def check_compiler(machine: HostFacts) -> HostCheck:
    """The package's build and most judged languages need one."""
    found = next(filter(None, map(machine.find_program, ("cc", "gcc", "clang"))), None)
    meaning = "Needed for C and C++ submissions, checkers and the launcher build."
    if found is None:
        return HostCheck(
            "compiler", HostCheckState.DEGRADED, "none", meaning, "Install gcc and g++ (Debian: apt install g++)."
        )
    return HostCheck("compiler", HostCheckState.OK, found, meaning)


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
