"""Collecting files from a work directory that a program has filled with links, special files and races."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.domain.limits import MIB
from adjudge.sandbox import SandboxVerdict
from tests.sandbox.host_state import HostState
from tests.sandbox.sandbox_case import SandboxCase

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

TRAPS = (
    "symlink", "symlink_inside", "symlink_relative", "loop", "symlink_proc", "hardlink", "hardlink_exe", "fifo",
    "socket", "etc/passwd", "unreadable_folder", "unreadable", "sparse", "race", "missing", "folder", "good",
)  # fmt: skip


async def test_collect_copies_only_regular_files_of_program(
    sandbox_case: SandboxCase, host: HostState, tmp_path: Path
) -> None:
    report = await sandbox_case.run("trap_collector", str(host.secret), collect=TRAPS, collect_to=tmp_path)
    assert (report.verdict, report.stdout.splitlines()[-1]) == (SandboxVerdict.OK, b"created")
    result = {entry.name: entry for entry in report.collected}
    assert list(result) == list(TRAPS)
    assert (tmp_path / "good").read_bytes() == b"good"
    assert (result["good"].files, result["good"].size_bytes, result["good"].error) == (1, 4, "")
    refused = {"symlink", "symlink_inside", "symlink_relative", "loop", "symlink_proc", "fifo", "socket", "etc/passwd"}
    for name in refused | {"missing"}:
        assert result[name].error, name
        assert not (tmp_path / name).exists()
        assert not (tmp_path / name).is_symlink()
    assert _size(tmp_path) <= 16 * MIB
    passwd = Path("/etc/passwd").read_bytes()
    for path in tmp_path.rglob("*"):
        assert not path.is_symlink()
        if path.is_file():
            body = path.read_bytes()
            assert host.canary.encode() not in body
            assert body != passwd


def _size(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


async def test_collected_files_have_caller_as_owner_and_no_set_uid(sandbox_case: SandboxCase, tmp_path: Path) -> None:
    code = "import os\nopen('out','w').write('x')\nos.chmod('out',0o6777)"
    report = await sandbox_case.sandbox.run(sandbox_case.script(code, collect=("out",), collect_to=tmp_path))
    assert report.verdict is SandboxVerdict.OK, report
    seen = (tmp_path / "out").stat()
    assert not seen.st_mode & 0o6000
    assert seen.st_uid == tmp_path.stat().st_uid


async def test_collect_copies_whole_directory(sandbox_case: SandboxCase, tmp_path: Path) -> None:
    code = "import os\nos.mkdir('d')\nfor i in range(40): open(f'd/{i}','wb').write(b'x'*100_000)"
    report = await sandbox_case.sandbox.run(sandbox_case.script(code, collect=("d",), collect_to=tmp_path))
    assert report.verdict is SandboxVerdict.OK, report
    assert (report.collected[0].files, report.collected[0].size_bytes) == (40, 4_000_000)
    assert len(list((tmp_path / "d").iterdir())) == 40
