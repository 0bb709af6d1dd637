"""The checks of ``adjudge doctor --container`` agree with what the sandbox does on this machine.

Also run on cgroup v2, as root and as an unprivileged user with a delegated subtree: ``make test-cgroup2``.
"""

from __future__ import annotations

from pathlib import Path

from adjudge.sandbox.container_checks import check_container
from adjudge.sandbox.doctor import CGROUP_USE, HostCheckState, HostFacts, probe


async def test_container_checks_agree_with_the_probe(tmp_path: Path) -> None:
    probed = {check.name: check for check in await probe(tmp_path / "state")}
    assert probed["launcher"].state is not HostCheckState.MISSING, probed
    checks = {check.name: check for check in check_container(HostFacts.here(), [tmp_path])}
    assert checks["capabilities"].state is HostCheckState.OK
    assert checks["/proc"].state is HostCheckState.OK
    assert checks["writable directories"].state is HostCheckState.OK
    if "cgroup v1" in checks["own cgroup"].observed:
        return
    has_cgroup = probed[CGROUP_USE].state is HostCheckState.OK
    assert (checks["own cgroup"].state is HostCheckState.OK) is has_cgroup, checks["own cgroup"]
