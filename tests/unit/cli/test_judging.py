"""Settings of the sandbox: output limits, agents, cgroup requirement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from adjudge import settings
from adjudge.cli.doctor import check_toolchains
from adjudge.cli.wiring.judge import make_sandbox
from adjudge.judge.languages import Languages
from adjudge.sandbox import SandboxRunSpec, SandboxVerdict
from adjudge.sandbox.doctor import HostCheckState

ALLOWED = {"ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP": "true"}
WRITER = "import os; os.write(1, b'o' * 9000); os.write(2, b'e' * 9000)"


async def test_output_limits_are_settings() -> None:
    loaded = settings.load(environ=ALLOWED | {"JUDGE_STDOUT_LIMIT_BYTES": "2048", "JUDGE_STDERR_LIMIT_BYTES": "4096"})
    async with make_sandbox(loaded, 1) as box:
        report = await box.run(SandboxRunSpec(argv=("/usr/bin/python3", "-I", "-c", WRITER)))
    assert report.verdict is SandboxVerdict.OK
    assert (report.stdout, report.stderr) == (b"o" * 2048, b"e" * 4096)
    assert (report.stdout_truncated, report.stderr_truncated) == (True, True)
    assert report.output_bytes == 18_000


@pytest.mark.parametrize(("environ", "used"), [({}, True), ({"ADJUDGE_JUDGE_USE_AGENT": "false"}, False)])
async def test_agent_can_be_disabled(environ: dict[str, str], used: bool) -> None:
    async with make_sandbox(settings.load(environ=ALLOWED | environ), 1) as box:
        assert box.use_agent is used
        report = await box.run(SandboxRunSpec(argv=("/bin/true",)))
        assert (report.verdict, report.degraded, box.is_degraded) == (SandboxVerdict.OK, False, False)


def test_cgroup_is_required_unless_disabled() -> None:
    assert make_sandbox(settings.load(environ={}), 1).unsafe is False
    assert make_sandbox(settings.load(environ=ALLOWED), 1).unsafe is True


async def test_doctor_lists_usable_and_unusable_toolchains(tmp_path: Path) -> None:
    """A shim in a home folder is on the path, and judging would refuse its language."""
    shim = tmp_path / "bin" / "shim-of-rustc"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexec rustup run stable rustc\n")
    shim.chmod(0o755)
    loaded = Languages.load()
    rust = replace(loaded.get("rust"), tools=(shim.name,), version=(shim.name, "--version"))
    languages = Languages([loaded.get("bash"), rust], [str(shim.parent)])
    where = {shim.name: str(shim), "bash": "/bin/bash"}
    there, seeming = await check_toolchains(languages, where.get)
    assert (there.state, there.observed) == (HostCheckState.OK, "Bash")
    assert seeming.state is HostCheckState.DEGRADED
    assert str(shim) in seeming.observed
    assert "Rust" in seeming.observed
    assert seeming.fix
