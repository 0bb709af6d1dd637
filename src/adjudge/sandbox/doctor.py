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
from adjudge.sandbox.report import MemorySource, RunReport, RunVerdict
from adjudge.sandbox.spec import RunSpec

CGROUP_USE: Final = "cgroup accounting"


class CheckState(StrEnum):
    """How well one thing stands."""

    OK = "ok"
    DEGRADED = "degraded"
    """It works, but less exactly or less strictly than it could."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the diagnosis."""

    name: str
    state: CheckState
    found: str
    meaning: str
    fix: str = ""
    essential: bool = False
    """Untrusted code may not run while this is missing."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every row, and what follows from them."""

    checks: tuple[Check, ...]

    @property
    def may_run_untrusted(self) -> bool:
        """Whether hostile code can be let in."""
        return not self.obstacles()

    def obstacles(self, *, allow_without_cgroup: bool = False) -> tuple[Check, ...]:
        """What must be fixed before anything is judged here; the operator may do without a cgroup."""
        missing = (check for check in self.checks if check.essential and check.state is CheckState.MISSING)
        return tuple(check for check in missing if not (allow_without_cgroup and check.name == CGROUP_USE))


@dataclass(frozen=True, slots=True)
class Machine:
    """Where facts of the host are read: its file system from a root, which tests replace."""

    root: Path = Path("/")
    is_root: bool = False
    find_program: Callable[[str], str | None] = shutil.which

    def read(self, path: str) -> str | None:
        """A small kernel file without its final newline, or None where there is none."""
        with suppress(OSError):
            return (self.root / path.lstrip("/")).read_text(errors="replace").strip()
        return None

    def names(self, pattern: str) -> list[Path]:
        """Paths that match, sorted."""
        return sorted(self.root.glob(pattern.lstrip("/")))


async def examine(machine: Machine | None = None, state_dir: Path | None = None) -> Diagnosis:
    """Look at the host and run the probe."""
    here = machine or Machine(is_root=os.geteuid() == 0)
    host = [check(here) for check in _HOST_CHECKS]
    probed = await probe(state_dir)
    return Diagnosis((*probed, *host))


# --- the probe: what a program in the box really sees ---

_CANARY: Final = "canary-of-the-doctor"
_PROBE_FILES: Final = ("/proc/self/status", "/proc/self/mountinfo", "/proc/net/dev")
_PROBE_LIMITS: Final = Limits(cpu_ms=1_000, wall_ms=5_000, memory_bytes=64 * MIB, processes=4, output_bytes=256 * KIB)


async def probe(state_dir: Path | None = None) -> list[Check]:
    """Run a reader of its own status in the box, with a secret on the host that it must not find."""
    with tempfile.TemporaryDirectory(prefix="adjudge-doctor-") as folder:
        secret = Path(folder) / "secret"
        await asyncio.to_thread(_plant, secret)
        argv = ("/bin/cat", *_PROBE_FILES, str(secret))
        try:
            async with Sandbox(slots=1, state_dir=state_dir, unsafe=True) as box:
                report = await box.run(RunSpec(argv=argv, limits=_PROBE_LIMITS))
        except (AdjudgeError, OSError) as error:
            return [_no_launcher(str(error))]
    if report.verdict is RunVerdict.SE:
        return [_no_launcher(str(report.sandbox_error))]
    return [_launcher_runs(report), *isolation_checks(report.stdout.decode(errors="replace")), _figures(report)]


def _plant(secret: Path) -> None:
    secret.write_text(_CANARY)
    secret.parent.chmod(0o755)
    secret.chmod(0o644)


def _no_launcher(why: str) -> Check:
    return Check(
        "launcher",
        CheckState.MISSING,
        why,
        "Programs cannot be sandboxed on this machine.",
        "Install a C compiler and build the package again (`pip install .`); if it is built, the text on the left says"
        " which step the kernel refused: see docs/how-to/prepare-a-host.md.",
        essential=True,
    )


def _launcher_runs(report: RunReport) -> Check:
    if report.degraded:
        return Check(
            "launcher",
            CheckState.DEGRADED,
            "agent did not start; falling back to one process per run",
            "Runs start more slowly. Isolation is the same.",
            "See the agent's error in the log.",
        )
    return Check("launcher", CheckState.OK, f"probe finished in {report.wall_ms} ms", "The sandbox can run programs.")


def isolation_checks(seen: str) -> list[Check]:
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


def _isolation(name: str, holds: bool, subject: str, option: str) -> Check:
    if holds:
        return Check(name, CheckState.OK, "verified from inside the sandbox", f"Isolated: {subject}.")
    meaning = f"Not isolated: {subject}. Do not run untrusted code."
    fix = f"A kernel with {option}; in a container, one that does not forbid it: see docs/how-to/prepare-a-host.md."
    return Check(name, CheckState.MISSING, "not effective", meaning, fix, essential=True)


def _figures(report: RunReport) -> Check:
    source = report.memory_source
    if source is MemorySource.RLIMIT:
        return Check(
            CGROUP_USE,
            CheckState.MISSING,
            "no cgroup can be used; usage is sampled, limits are rlimits",
            "Not limited: shared anonymous memory and socket buffers (beyond any memory limit), and the CPU time of"
            " children that nobody waits for (up to the wall limit). Judging is refused.",
            "Run as root, or delegate a cgroup v2 subtree to this user: a systemd unit with Delegate=yes, or"
            " `systemd-run --user --scope -p Delegate=yes make up`. Only for programs that you trust:"
            " ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true.",
            essential=True,
        )
    return Check(
        CGROUP_USE, CheckState.OK, str(source), "Memory, CPU time and process counts are measured by the kernel."
    )


# --- the host: what is there, and what it means ---


def check_user_namespaces(machine: Machine) -> Check:
    """An ordinary user needs them; root does not."""
    meaning = "Unprivileged users need user namespaces for the sandbox."
    most = machine.read("/proc/sys/user/max_user_namespaces")
    switch = machine.read("/proc/sys/kernel/unprivileged_userns_clone")
    confined = machine.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if most in (None, "0"):
        fix = "sysctl -w user.max_user_namespaces=10000, on a kernel with CONFIG_USER_NS."
        return Check("user namespaces", _unless_root(machine), "disabled", meaning, fix)
    if switch == "0":
        fix = "sysctl -w kernel.unprivileged_userns_clone=1, or run as root."
        return Check("user namespaces", _unless_root(machine), "disabled for unprivileged users", meaning, fix)
    if confined == "1":
        fix = (
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, an AppArmor profile with userns, or run as root."
        )
        return Check("user namespaces", _unless_root(machine), "restricted by AppArmor", meaning, fix)
    return Check("user namespaces", CheckState.OK, f"enabled (limit {most})", meaning)


def _unless_root(machine: Machine) -> CheckState:
    return CheckState.DEGRADED if machine.is_root else CheckState.MISSING


def check_cgroups(machine: Machine) -> Check:
    """Which version there is, and whether the controllers we need are in it."""
    meaning = "Cgroups measure and limit whole process trees."
    needed = {"memory", "pids", "cpu"}
    v2 = set((machine.read("/sys/fs/cgroup/cgroup.controllers") or "").split())
    if needed <= v2:
        return Check("cgroup version", CheckState.OK, "v2: " + " ".join(sorted(v2)), meaning)
    v1 = {path.name for path in machine.names("/sys/fs/cgroup/*") if (path / "tasks").exists()}
    if {"memory", "pids", "cpuacct"} <= {part for name in v1 for part in name.split(",")}:
        return Check("cgroup version", CheckState.OK, "v1: " + " ".join(sorted(v1)), meaning)
    return Check(
        "cgroup version",
        CheckState.DEGRADED,
        "v2 without " + " ".join(sorted(needed - v2)) if v2 else "no usable hierarchy",
        meaning,
        "Mount cgroup v2 at /sys/fs/cgroup with the memory, pids and cpu controllers (the default with systemd).",
    )


def check_seccomp(machine: Machine) -> Check:
    """The filter needs the kernel's support."""
    actions = machine.read("/proc/sys/kernel/seccomp/actions_avail")
    if actions is None:
        fix = "Use a kernel with CONFIG_SECCOMP_FILTER."
        return Check("seccomp support", CheckState.MISSING, "none", "System call filtering is not available.", fix)
    return Check("seccomp support", CheckState.OK, actions, "System call filtering is available.")


def check_swap(machine: Machine) -> Check:
    """Swap blurs both memory and time."""
    areas = (machine.read("/proc/swaps") or "").splitlines()[1:]
    meaning = "Swapping makes times unpredictable and memory measurements too low."
    if areas:
        return Check("swap", CheckState.DEGRADED, f"{len(areas)} swap area(s) active", meaning, "swapoff -a")
    return Check("swap", CheckState.OK, "none", meaning)


def check_smt(machine: Machine) -> Check:
    """Two programs on one core slow each other."""
    meaning = "Hyper-threading: two programs on one core slow each other down by up to half."
    if machine.read("/sys/devices/system/cpu/smt/active") == "1":
        fix = "echo off > /sys/devices/system/cpu/smt/control, or pin slots to CPUs of different cores (pin_cpus)."
        return Check("SMT", CheckState.DEGRADED, "active", meaning, fix)
    return Check("SMT", CheckState.OK, "inactive", meaning)


def check_frequency(machine: Machine) -> Check:
    """A clock that changes makes equal runs unequal."""
    meaning = "CPU time of the same work varies with the clock frequency."
    governors = {machine.read(str(path.relative_to(machine.root))) for path in machine.names(
        "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")}  # fmt: skip
    if not governors:
        return Check("frequency scaling", CheckState.OK, "no control on this host", meaning)
    if governors != {"performance"}:
        found = "governor " + " ".join(sorted(str(governor) for governor in governors))
        return Check("frequency scaling", CheckState.DEGRADED, found, meaning, "cpupower frequency-set -g performance")
    return Check("frequency scaling", CheckState.OK, "governor performance", meaning)


def check_turbo(machine: Machine) -> Check:
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
        return Check("turbo", CheckState.DEGRADED, "on", meaning, fix)
    return Check("turbo", CheckState.OK, "off, or no control on this host", meaning)


def check_huge_pages(machine: Machine) -> Check:
    """Huge pages round memory figures up."""
    setting = machine.read("/sys/kernel/mm/transparent_hugepage/enabled") or ""
    meaning = "With huge pages always on, one touched byte may count as 2 MiB."
    if "[always]" in setting:
        fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        return Check("huge pages", CheckState.DEGRADED, "always", meaning, fix)
    return Check("huge pages", CheckState.OK, "madvise or never", meaning)


def check_compiler(machine: Machine) -> Check:
    """The package's build and most judged languages need one."""
    found = next(filter(None, map(machine.find_program, ("cc", "gcc", "clang"))), None)
    meaning = "Needed for C and C++ submissions, checkers and the launcher build."
    if found is None:
        return Check("compiler", CheckState.DEGRADED, "none", meaning, "Install gcc and g++ (Debian: apt install g++).")
    return Check("compiler", CheckState.OK, found, meaning)


_HOST_CHECKS: Final[tuple[Callable[[Machine], Check], ...]] = (
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
