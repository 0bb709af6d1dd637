"""What a worker needs in a container, with a fake file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.sandbox import container_checks as checks
from adjudge.sandbox.doctor import HostCheckState, HostFacts

ALL = sum(1 << number for number in checks.REQUIRED_CAPABILITIES.values())
MOUNTS = "21 20 0:19 / / ro - overlay overlay ro\n22 21 0:20 / /proc rw - proc proc rw\n"
COVERED = MOUNTS + "23 22 0:21 / /proc/kcore rw - tmpfs tmpfs rw\n"
CGROUP = {
    "sys/fs/cgroup/cgroup.controllers": "cpu memory pids",
    "proc/self/cgroup": "0::/\n",
    "sys/fs/cgroup/cgroup.procs": "1",
    "sys/fs/cgroup/cgroup.subtree_control": "",
}


def host(
    root: Path, files: dict[str, str] | None = None, *, is_root: bool = True, locked: tuple[str, ...] = ()
) -> HostFacts:
    for name, text in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostFacts(root, is_root, may_write=lambda path: str(path.relative_to(root)) not in locked)


def test_all_capabilities_are_enough(tmp_path: Path) -> None:
    found = checks.check_capabilities(host(tmp_path, {"proc/self/status": f"CapEff:\t{ALL:016x}\n"}))
    assert found.state is HostCheckState.OK


@pytest.mark.parametrize("name", checks.REQUIRED_CAPABILITIES)
def test_missing_capability_is_named(tmp_path: Path, name: str) -> None:
    given = ALL & ~(1 << checks.REQUIRED_CAPABILITIES[name])
    found = checks.check_capabilities(host(tmp_path, {"proc/self/status": f"CapEff:\t{given:016x}\n"}))
    assert (found.state, found.is_required, found.observed) == (HostCheckState.MISSING, True, f"missing: {name}")
    assert f"--cap-add={name.removeprefix('CAP_')}" in found.fix


def test_unprivileged_user_needs_no_capabilities(tmp_path: Path) -> None:
    files = {"proc/self/status": "CapEff:\t0000000000000000\n"}
    assert checks.check_capabilities(host(tmp_path, files, is_root=False)).state is HostCheckState.OK


@pytest.mark.parametrize(
    ("mounts", "is_root", "uid_map", "state"),
    [
        (MOUNTS, False, "0 0 4294967295", HostCheckState.OK),
        (COVERED, True, "         0          0 4294967295", HostCheckState.OK),
        (COVERED, True, "0 100000 65536", HostCheckState.MISSING),
        (COVERED, False, "0 0 4294967295", HostCheckState.MISSING),
    ],
)
def test_covered_proc_is_a_problem_in_user_namespaces(
    tmp_path: Path, mounts: str, is_root: bool, uid_map: str, state: HostCheckState
) -> None:
    files = {"proc/self/mountinfo": mounts, "proc/self/uid_map": uid_map}
    found = checks.check_proc(host(tmp_path, files, is_root=is_root))
    assert found.state is state
    assert (state is HostCheckState.OK) or "/proc/kcore" in found.observed


def test_writable_cgroup_is_enough(tmp_path: Path) -> None:
    found = checks.check_own_cgroup(host(tmp_path, CGROUP))
    assert (found.state, found.observed) == (HostCheckState.OK, "/sys/fs/cgroup is writable")


def test_processes_in_the_leaf_belong_to_its_parent(tmp_path: Path) -> None:
    found = checks.check_own_cgroup(host(tmp_path, {**CGROUP, "proc/self/cgroup": "0::/adjudge-main\n"}))
    assert found.observed == "/sys/fs/cgroup is writable"


@pytest.mark.parametrize(
    "file", ["sys/fs/cgroup", "sys/fs/cgroup/cgroup.procs", "sys/fs/cgroup/cgroup.subtree_control"]
)
def test_read_only_cgroup_is_named(tmp_path: Path, file: str) -> None:
    found = checks.check_own_cgroup(host(tmp_path, CGROUP, locked=(file,)))
    assert (found.state, found.is_required) == (HostCheckState.MISSING, True)
    assert "remount,rw" in found.fix
    assert "Delegate=yes" in found.fix


def test_cgroup_without_controllers_is_named(tmp_path: Path) -> None:
    unit = "sys/fs/cgroup/system.slice/unit/cgroup.controllers"
    files = {**CGROUP, "proc/self/cgroup": "0::/system.slice/unit\n", unit: "cpu pids"}
    found = checks.check_own_cgroup(host(tmp_path, files))
    assert found.observed == "/sys/fs/cgroup/system.slice/unit has no controller memory"


def test_limits_of_the_container_are_named(tmp_path: Path) -> None:
    files = {**CGROUP, "sys/fs/cgroup/pids.max": "100", "sys/fs/cgroup/cpu.max": "50000 100000"}
    machine = host(tmp_path, files)
    assert checks.check_process_limit(machine).state is HostCheckState.DEGRADED
    assert checks.check_cpu_quota(machine).state is HostCheckState.DEGRADED
    free = host(tmp_path, {"sys/fs/cgroup/pids.max": "max", "sys/fs/cgroup/cpu.max": "max 100000"})
    assert checks.check_process_limit(free).state is HostCheckState.OK
    assert checks.check_cpu_quota(free).state is HostCheckState.OK


def test_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "var").mkdir()
    wanted = [Path("/var/cache/adjudge")]
    assert checks.check_directories(host(tmp_path), wanted).state is HostCheckState.OK
    found = checks.check_directories(host(tmp_path, locked=("var",)), wanted)
    assert found.observed == "not writable: /var/cache/adjudge"
    assert found.is_required
