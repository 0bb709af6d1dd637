"""Host checks with a fake file system, and isolation checks with fake probe output."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.sandbox import doctor
from adjudge.sandbox.doctor import DoctorReport, HostCheck, HostCheckState, HostFacts

GOOD = """\
Pid:\t2
Uid:\t1900000000\t1900000000\t1900000000\t1900000000
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
21 20 0:19 / / ro,nosuid - tmpfs tmpfs ro
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes
    lo:       0       0    0    0    0     0          0         0        0
"""


def _host(
    root: Path, files: dict[str, str] | None = None, is_root: bool = False, programs: tuple[str, ...] = ()
) -> HostFacts:
    for name, text in (files or {}).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostFacts(root, is_root, lambda name: f"/usr/bin/{name}" if name in programs else None)


def _states(seen: str) -> dict[str, HostCheckState]:
    return {check.name: check.state for check in doctor.check_isolation(seen)}


def test_isolated_probe_passes_all_checks() -> None:
    assert set(_states(GOOD).values()) == {HostCheckState.OK}


@pytest.mark.parametrize(
    ("change", "to", "lost"),
    [
        ("Seccomp:\t2", "Seccomp:\t0", "seccomp"),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "privileges"),
        ("CapEff:\t0000000000000000", "CapEff:\t0000000000000001", "privileges"),
        ("Uid:\t1900000000", "Uid:\t0", "user"),
        ("Pid:\t2", "Pid:\t48123", "pid namespace"),
        ("    lo:", "  eth0: 1\n    lo:", "network namespace"),
        ("Inter-|", "canary-of-the-doctorInter-|", "mount namespace"),
    ],
)
def test_missing_isolation_is_reported_and_blocks_untrusted_code(change: str, to: str, lost: str) -> None:
    checks = doctor.check_isolation(GOOD.replace(change, to))
    missing = [check for check in checks if check.state is HostCheckState.MISSING]
    assert [check.name for check in missing] == [lost]
    assert missing[0].fix
    assert not DoctorReport(tuple(checks)).may_run_untrusted


def test_empty_probe_output_passes_no_check() -> None:
    states = _states("")
    assert {name for name, state in states.items() if state is HostCheckState.OK} == set()


def test_only_required_checks_block_untrusted_code() -> None:
    slow = HostCheck("swap", HostCheckState.MISSING, "", "", "")
    gone = HostCheck("launcher", HostCheckState.MISSING, "", "", "", is_required=True)
    assert DoctorReport((slow,)).may_run_untrusted
    assert not DoctorReport((slow, gone)).may_run_untrusted


def test_allow_without_cgroup_ignores_only_cgroup() -> None:
    no_cgroup = HostCheck(doctor.CGROUP_USE, HostCheckState.MISSING, "", "", "", is_required=True)
    no_seccomp = HostCheck("seccomp", HostCheckState.MISSING, "", "", "", is_required=True)
    assert not DoctorReport((no_cgroup,)).may_run_untrusted
    assert DoctorReport((no_cgroup,)).obstacles() == (no_cgroup,)
    assert DoctorReport((no_cgroup,)).obstacles(allow_without_cgroup=True) == ()
    assert DoctorReport((no_cgroup, no_seccomp)).obstacles(allow_without_cgroup=True) == (no_seccomp,)


@pytest.mark.parametrize(
    ("files", "as_user", "as_root"),
    [
        ({"proc/sys/user/max_user_namespaces": "9000\n"}, HostCheckState.OK, HostCheckState.OK),
        ({"proc/sys/user/max_user_namespaces": "0\n"}, HostCheckState.MISSING, HostCheckState.DEGRADED),
        ({}, HostCheckState.MISSING, HostCheckState.DEGRADED),
        (
            {"proc/sys/user/max_user_namespaces": "9", "proc/sys/kernel/unprivileged_userns_clone": "0"},
            HostCheckState.MISSING,
            HostCheckState.DEGRADED,
        ),
        (
            {
                "proc/sys/user/max_user_namespaces": "9",
                "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
            },
            HostCheckState.MISSING,
            HostCheckState.DEGRADED,
        ),
    ],
)
def test_user_namespaces(
    tmp_path: Path, files: dict[str, str], as_user: HostCheckState, as_root: HostCheckState
) -> None:
    for is_root, state in ((False, as_user), (True, as_root)):
        check = doctor.check_user_namespaces(_host(tmp_path, files, is_root))
        assert check.state is state
        assert bool(check.fix) == (state is not HostCheckState.OK)


def test_cgroup_version_is_detected(tmp_path: Path) -> None:
    v2 = _host(tmp_path / "v2", {"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n"})
    assert doctor.check_cgroups(v2).observed.startswith("v2")
    for name in ("memory", "pids", "cpu,cpuacct"):
        (tmp_path / "v1/sys/fs/cgroup" / name).mkdir(parents=True)
        (tmp_path / "v1/sys/fs/cgroup" / name / "tasks").touch()
    assert doctor.check_cgroups(HostFacts(tmp_path / "v1")).observed.startswith("v1")
    assert doctor.check_cgroups(HostFacts(tmp_path / "none")).state is HostCheckState.DEGRADED


def test_sources_of_timing_variation_are_degraded(tmp_path: Path) -> None:
    host = _host(
        tmp_path,
        {
            "proc/swaps": "Filename\tType\n/dev/sda2\tpartition\n",
            "sys/devices/system/cpu/smt/active": "1\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        },
    )
    checks = [doctor.check_swap, doctor.check_smt, doctor.check_frequency, doctor.check_turbo, doctor.check_huge_pages]
    for check in checks:
        assert check(host).state is HostCheckState.DEGRADED
        assert check(host).fix
        assert check(HostFacts(tmp_path / "bare")).state is HostCheckState.OK


def test_compiler_is_found_on_path(tmp_path: Path) -> None:
    host = _host(tmp_path, programs=("gcc", "python3"))
    assert doctor.check_compiler(host).observed == "/usr/bin/gcc"
    assert doctor.check_compiler(_host(tmp_path)).state is HostCheckState.DEGRADED
