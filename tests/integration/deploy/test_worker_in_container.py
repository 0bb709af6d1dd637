"""What the worker's container permits is enough for the sandbox: the same restrictions, applied to a process.

No engine is needed: as root, a mount namespace with a read-only root, masked /proc, and the capabilities of the compose
file. ``adjudge doctor --container`` runs inside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from tests.unit.deploy.facts import CAPABILITIES, DEPLOY

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can create the mounts of a container"),
]
_CONTAINER = """
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs /run
for path in $(awk '{print $5}' /proc/self/mountinfo | grep -vE '^/(proc|dev|sys|run)(/|$)' | sort -u); do
    mount -o remount,bind,ro "$path" 2>/dev/null || true
done
mkdir /run/kept
mount --bind "$KEPT" /run/kept
mount -t tmpfs tmpfs /tmp
case "$KEPT" in /tmp/*) mkdir -p "$KEPT"; mount --bind /run/kept "$KEPT"; mount -o remount,bind,ro "$KEPT";; esac
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
mount --bind /dev/null /proc/kmsg
if touch /read-only 2>/dev/null; then echo "the root file system is writable" >&2; exit 1; fi
cd /tmp
exec "$@"
"""


def doctor(capabilities: Iterable[str], *identity: str) -> dict[str, Any]:
    """The report of the doctor under the restrictions of a container."""
    bounding = "-all," + ",".join(f"+{name.lower()}" for name in capabilities)
    restricted = ["setpriv", *identity, "--no-new-privs", f"--bounding-set={bounding}", "--inh-caps=-all"]
    command = [*restricted, sys.executable, "-m", "adjudge", "doctor", "--container", "--json"]
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _CONTAINER, "sh", *command]
    caches = {"ADJUDGE_WORKER_CACHE_DIR": "/run/blobs", "ADJUDGE_JUDGE_CACHE_DIR": "/run/compiled", "HOME": "/tmp"}
    kept = {"KEPT": str(DEPLOY.parent)}
    done = subprocess.run(argv, env={**os.environ, **caches, **kept}, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("{"), done.stderr
    report = json.loads(done.stdout)
    return {"may_run": report["may_run_untrusted"], **{check["name"]: check for check in report["checks"]}}


def test_capabilities_of_the_container_files_are_enough() -> None:
    report = doctor(CAPABILITIES)
    assert report["may_run"], report
    assert report["capabilities"]["state"] == "ok"
    assert "paths covered" in report["/proc"]["observed"]
    assert report["writable directories"]["state"] == "ok"


@pytest.mark.parametrize("name", ["SYS_ADMIN", "SETPCAP", "CHOWN"])
def test_missing_capability_is_named_and_refused(name: str) -> None:
    report = doctor([given for given in CAPABILITIES if given != name])
    assert not report["may_run"]
    assert report["capabilities"]["observed"] == f"missing: CAP_{name}"


_ENTRYPOINT = """
set -eu
mount --make-rprivate /
mount -t cgroup2 none /sys/fs/cgroup
mount -o remount,bind,ro /sys/fs/cgroup
mount -t tmpfs tmpfs /opt
mkdir -p /opt/adjudge/bin
printf '#!/bin/sh\\ntest -w /sys/fs/cgroup/cgroup.procs && echo "writable, $*"\\n' > /opt/adjudge/bin/adjudge
chmod +x /opt/adjudge/bin/adjudge
test ! -w /sys/fs/cgroup/cgroup.procs
exec "$@"
"""


def test_entry_point_makes_the_cgroup_writable() -> None:
    """In a mount namespace of its own, in which the cgroup is read-only, as engines mount it."""
    bounding = "-all," + ",".join(f"+{name.lower()}" for name in CAPABILITIES)
    entry = ["setpriv", "--no-new-privs", f"--bounding-set={bounding}", str(DEPLOY / "container" / "worker-entrypoint")]
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTRYPOINT, "sh", *entry, "worker"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout == "writable, worker\n", done.stderr
