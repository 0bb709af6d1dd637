"""What a worker needs in a container or a systemd unit: capabilities, /proc, cgroups, directories.

``run_checks`` shows whether the sandbox works; these checks name the option of the engine or of the unit that is
missing. ``REQUIRED_CAPABILITIES`` is the set that all tests of the sandbox pass with.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adjudge.sandbox.doctor import HostCheck, HostCheckState, HostFacts

REQUIRED_CAPABILITIES: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SETPCAP": 8,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
}
"""Capabilities that the launcher uses as root, with their numbers. It drops all of them before it runs a program."""
_LEAF: Final = "/adjudge-main"
"""The child into which the launcher moves the processes of the cgroup, which cannot have controllers otherwise."""
_PROCESSES_MIN: Final = 1024
_INITIAL_MAP: Final = "0 0 4294967295"
_CONTROLLERS: Final = {"memory", "pids"}


def check_container(machine: HostFacts, directories: Sequence[Path]) -> list[HostCheck]:
    """All checks; ``directories`` must be writable."""
    return [
        check_capabilities(machine),
        check_proc(machine),
        check_own_cgroup(machine),
        check_process_limit(machine),
        check_cpu_quota(machine),
        check_directories(machine, directories),
    ]


def check_capabilities(machine: HostFacts) -> HostCheck:
    """As root, the launcher needs capabilities; as another user, user namespaces instead."""
    name, meaning = "capabilities", "The launcher needs them to create sandboxes; programs in sandboxes have none."
    if not machine.is_root:
        return HostCheck(name, HostCheckState.OK, "not needed: not root", meaning)
    given = int(_status(machine).get("CapEff") or "0", 16)
    missing = sorted(cap for cap, number in REQUIRED_CAPABILITIES.items() if not given >> number & 1)
    if not missing:
        return HostCheck(name, HostCheckState.OK, "all of the needed ones", meaning)
    options = " ".join(f"--cap-add={cap.removeprefix('CAP_')}" for cap in missing)
    fix = f"Engine: {options}. Kubernetes: securityContext.capabilities.add. systemd: CapabilityBoundingSet=."
    return HostCheck(name, HostCheckState.MISSING, f"missing: {' '.join(missing)}", meaning, fix, is_required=True)


def check_proc(machine: HostFacts) -> HostCheck:
    """Inside a user namespace, the kernel permits a new /proc only if no part of the present one is covered."""
    name, meaning = "/proc", "Each sandbox mounts a /proc of its own."
    mounts = [line.split()[4] for line in (machine.read("/proc/self/mountinfo") or "").splitlines() if line]
    covered = sorted({path for path in mounts if path.startswith("/proc/")})
    is_initial = " ".join((machine.read("/proc/self/uid_map") or _INITIAL_MAP).split()) == _INITIAL_MAP
    if not covered:
        return HostCheck(name, HostCheckState.OK, "not covered", meaning)
    if machine.is_root and is_initial:
        return HostCheck(name, HostCheckState.OK, f"{len(covered)} paths covered; no problem for root", meaning)
    fix = (
        "Run as root of the host's user namespace with the capabilities above, or leave /proc uncovered: systemd"
        " without ProtectKernelTunables=, ProtectKernelLogs= and ProtectProc=; engines with --security-opt unmask=ALL"
        " (Podman) or systempaths=unconfined (Docker); Kubernetes with procMount: Unmasked."
    )
    return HostCheck(name, HostCheckState.MISSING, "covered: " + " ".join(covered[:5]), meaning, fix, is_required=True)


def check_own_cgroup(machine: HostFacts) -> HostCheck:
    """The cgroup of this process must be writable and have the controllers."""
    name, meaning = "own cgroup", "Sandboxes are children of the cgroup that this process is in."
    folder = _own_cgroup(machine)
    if folder is None:
        return HostCheck(name, HostCheckState.OK, "cgroup v1; see cgroup accounting", meaning)
    missing = sorted(_CONTROLLERS - set((machine.read(f"{folder}/cgroup.controllers") or "").split()))
    if missing:
        fix = "systemd: Delegate=yes. Without systemd: enable them in cgroup.subtree_control of every parent."
        observed = f"{folder} has no controller {' '.join(missing)}"
        return HostCheck(name, HostCheckState.MISSING, observed, meaning, fix, is_required=True)
    locked = [file for file in ("cgroup.procs", "cgroup.subtree_control") if not machine.writable(f"{folder}/{file}")]
    if not machine.writable(folder) or locked:
        fix = (
            "systemd: Delegate=yes. Containers: a private cgroup namespace whose /sys/fs/cgroup is writable; as root"
            " with CAP_SYS_ADMIN, `mount -o remount,rw /sys/fs/cgroup` before the worker starts makes it so."
        )
        return HostCheck(name, HostCheckState.MISSING, f"{folder} is not writable", meaning, fix, is_required=True)
    return HostCheck(name, HostCheckState.OK, f"{folder} is writable", meaning)


def check_process_limit(machine: HostFacts) -> HostCheck:
    """A limit of the container applies to all sandboxes together."""
    name, meaning = "process limit", "The limit of the container or unit applies to all sandboxes together."
    folder = _own_cgroup(machine)
    limit = (machine.read(f"{folder}/pids.max") if folder else None) or "max"
    if limit == "max" or int(limit) >= _PROCESSES_MIN:
        return HostCheck(name, HostCheckState.OK, limit, meaning)
    fix = "Engine: --pids-limit=-1. systemd: TasksMax=infinity. Kubernetes: podPidsLimit of the kubelet."
    return HostCheck(name, HostCheckState.DEGRADED, limit, meaning, fix)


def check_cpu_quota(machine: HostFacts) -> HostCheck:
    """A quota stops programs in the middle of a run."""
    name, meaning = "CPU quota", "With a quota, programs are stopped for parts of each period: wall times vary."
    folder = _own_cgroup(machine)
    quota = (machine.read(f"{folder}/cpu.max") if folder else None) or "max"
    if quota.startswith("max"):
        return HostCheck(name, HostCheckState.OK, "none", meaning)
    fix = "Assign whole cores instead (--cpuset-cpus, AllowedCPUs=, static CPU manager policy), and as many slots."
    return HostCheck(name, HostCheckState.DEGRADED, f"cpu.max is {quota}", meaning, fix)


def check_directories(machine: HostFacts, directories: Sequence[Path]) -> HostCheck:
    """The root file system may be read-only, these directories not."""
    name, meaning = "writable directories", "Caches, slot locks and temporary files; the rest may be read-only."
    locked = [str(folder) for folder in directories if not machine.writable(str(_nearest(machine, folder)))]
    if not locked:
        return HostCheck(name, HostCheckState.OK, " ".join(map(str, directories)), meaning)
    fix = "Mount a tmpfs or a volume there, owned by the user of the worker."
    return HostCheck(name, HostCheckState.MISSING, "not writable: " + " ".join(locked), meaning, fix, is_required=True)


def _nearest(machine: HostFacts, folder: Path) -> Path:
    """The directory, or its nearest existing parent, in which it would be created."""
    path = folder
    while not (machine.root / str(path).lstrip("/")).exists() and path != path.parent:
        path = path.parent
    return path


def _status(machine: HostFacts) -> dict[str, str]:
    lines = (machine.read("/proc/self/status") or "").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _own_cgroup(machine: HostFacts) -> str | None:
    """The directory of this process's cgroup; None if cgroup v2 does not have the controllers."""
    available = set((machine.read("/sys/fs/cgroup/cgroup.controllers") or "").split())
    if not available >= _CONTROLLERS:
        return None
    for line in (machine.read("/proc/self/cgroup") or "").splitlines():
        if line.startswith("0::"):
            return os.path.normpath(f"/sys/fs/cgroup{line.removeprefix('0::').removesuffix(_LEAF)}")
    return None
