"""Init process of the virtual machine: mounts cgroup v2 with all controllers, runs the suite twice, powers off.

Uses the standard library only. The suite runs as root, then as an unprivileged user with a delegated cgroup subtree.
The host reads the console output between the markers.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import traceback
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
USER = 1000
CGROUPS = Path("/sys/fs/cgroup")
MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8
POWER_OFF = 0x4321FEDC
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def mount(kind: str, target: str, flags: int = 0, options: str = "") -> None:
    Path(target).mkdir(parents=True, exist_ok=True)
    if LIBC.mount(kind.encode(), target.encode(), kind.encode(), flags, options.encode()) != 0:
        say(f"mount {kind} {target}: {os.strerror(ctypes.get_errno())}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def settings() -> dict[str, str]:
    """Settings from the kernel command line, adjudge.NAME=VALUE."""
    words = Path("/proc/cmdline").read_text().split()
    return dict(word.removeprefix("adjudge.").split("=", 1) for word in words if word.startswith("adjudge."))


def prepare() -> None:
    mount("proc", "/proc", MS_NOSUID_NODEV_NOEXEC)
    mount("sysfs", "/sys", MS_NOSUID_NODEV_NOEXEC)
    mount("devtmpfs", "/dev")
    mount("tmpfs", "/dev/shm", 2 | 4)
    mount("tmpfs", "/run", 2 | 4, "mode=755")
    mount("cgroup2", str(CGROUPS), MS_NOSUID_NODEV_NOEXEC)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1")):
        if not Path("/dev", name).exists():
            Path("/dev", name).symlink_to(target)
    LIBC.sethostname(b"cgroup2", 7)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    # As `adjudge doctor` recommends: with huge pages, reported memory is rounded up.
    Path("/sys/kernel/mm/transparent_hugepage/enabled").write_text("madvise")
    available = (CGROUPS / "cgroup.controllers").read_text().split()
    enable(CGROUPS, available)


def enable(group: Path, controllers: list[str]) -> None:
    (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def leaf(name: str, owner: int | None) -> Path:
    """Create a cgroup for one user, delegated like systemd's Delegate=yes."""
    group = CGROUPS / name
    group.mkdir()
    enable(group, (group / "cgroup.controllers").read_text().split())
    inner = group / "session"
    inner.mkdir()
    if owner is not None:
        for folder in (group, inner):
            for path in (folder, *(folder / f"cgroup.{file}" for file in ("procs", "threads", "subtree_control"))):
                os.chown(path, owner, owner)
    return inner


def run_leg(name: str, uid: int, configured: dict[str, str]) -> int:
    home = Path("/tmp") / f"home-{name}"
    home.mkdir()
    os.chown(home, uid, uid)
    group = leaf(name, uid or None)

    def enter() -> None:
        (group / "cgroup.procs").write_text("0")
        if uid:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)

    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "USER": name,
        "CI": "true",
        "PYTHONPATH": f"{configured['repository']}/src",
        "ADJUDGE_TEST_TIME_SCALE": configured.get("time_scale", "1"),
        "ADJUDGE_TEST_PROGRAMS": "/programs",
        "ADJUDGE_TEST_MODES": configured.get("ways", "agent,command"),
    }
    repository = configured["repository"]
    # The test that runs the suite as another user is left to `make test`. So are the tests of the command line, because
    # each start takes ten seconds on an emulated machine.
    argv = [sys.executable, "-m", "pytest", "tests/sandbox"]
    argv += [f"--ignore=tests/sandbox/test_{name}.py" for name in ("unprivileged_user", "commands")]
    argv += [
        "--confcutdir=tests/sandbox",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        "--color=no",
        "-rfE",
    ]
    argv += configured.get("args", "").split("+") if configured.get("args") else []
    say(f"<<<leg {name}")
    ended = subprocess.run(argv, cwd=repository, env=environment, preexec_fn=enter, check=False)
    say(f">>>leg {name} {ended.returncode}")
    return ended.returncode


def main() -> None:
    prepare()
    configured = settings()
    say("")  # the firmware may leave an unfinished line
    say(f"kernel {os.uname().release}")
    say(f"controllers {(CGROUPS / 'cgroup.controllers').read_text().strip()}")
    # The doctor's output helps to debug a new kernel.
    adjudge = [sys.executable, "-m", "adjudge", "doctor"]
    subprocess.run(
        adjudge, cwd=configured["repository"], env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "src"}, check=False
    )
    for name, uid in (("root", 0), ("user", USER)):
        if configured.get("leg", name) == name:
            run_leg(name, uid, configured)
    say("<<<end")


try:
    main()
except BaseException:
    traceback.print_exc()
    raise
finally:
    sys.stdout.flush()
    os.sync()
    LIBC.reboot(POWER_OFF)
