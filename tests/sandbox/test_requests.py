"""Requests: argv, environment, files and mounts with hostile names, and the attribution of errors."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import MIB
from adjudge.sandbox import InputFile, Mount, SandboxRunSpec, SandboxVerdict
from tests.sandbox.host_state import HostState
from tests.sandbox.sandbox_case import SMALL, SandboxCase, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

TRAVERSALS = ["../escape", "/escape", "a/../../escape", "..", ".", "", "a//b", "a/./b", "nul\0name", "x" * 300]
INJECTIONS = [
    "; touch /tmp/pwned", "$(touch pwned)", "`touch pwned`", "| cat /etc/passwd", "&& reboot", "> /work/out", "*", "~",
    "$HOME", "-rf", "--", "a\nb", "tab\there", "quote'\"", "ünïcode ✓", "\x7f\x1b[31m", "%s%n",
]  # fmt: skip


async def test_sandbox_blocks_argv_injection_and_path_traversal(sandbox_case: SandboxCase, host: HostState) -> None:
    """OJ-spec §7: arguments are passed unchanged, without a shell; path traversal is rejected with the field name."""
    report = await sandbox_case.run("echo", *INJECTIONS)
    assert report.verdict is SandboxVerdict.OK
    output = report.stdout.decode()
    for argument in INJECTIONS:
        assert f"arg {len(argument.encode())} {argument}\n" in output
    for name in TRAVERSALS:
        with pytest.raises(InvalidInput, match="files"):
            InputFile(name, b"")
        with pytest.raises(InvalidInput, match="collect"):
            SandboxRunSpec(argv=("/work/x",), collect=(name,), collect_to=host.folder)
    for target in ("relative", "/data/../etc", "/", "/proc/x", "/etc", "/work", "/a//b", "/nul\0", "/dev/x"):
        with pytest.raises(InvalidInput, match="mounts"):
            Mount(host.folder, target)
    for argv in ((), ("",), ("../../bin/sh",), ("/work/../../bin/sh",), ("/work/x", "nul\0inside")):
        with pytest.raises(InvalidInput, match="argv"):
            SandboxRunSpec(argv=argv)
    for env in ({"": "x"}, {"A=B": "x"}, {"A": "nul\0"}):
        with pytest.raises(InvalidInput, match="env"):
            SandboxRunSpec(argv=("/work/x",), env=env)


async def test_private_program_is_copied(sandbox_case: SandboxCase, tmp_path: Path) -> None:
    """A file that everyone may execute is bind-mounted; of any other file, the program gets a copy."""
    program = tmp_path / "program"
    program.write_bytes((sandbox_case.programs / "echo").read_bytes())
    is_bind_mount = []
    for mode in (0o755, 0o700, 0o711, 0o754):
        program.chmod(mode)
        code = "import os,subprocess,sys; subprocess.run(['/work/p', 'hello'], check=True); sys.stdout.flush();"
        code += "print('inode', os.stat('/work/p').st_ino, oct(os.stat('/work/p').st_mode))"
        files = (InputFile("p", program, executable=True),)
        report = await sandbox_case.sandbox.run(sandbox_case.script(code, files=files))
        assert report.verdict is SandboxVerdict.OK, report
        assert b"arg 5 hello\n" in report.stdout
        is_bind_mount.append(f"inode {program.stat().st_ino} ".encode() in report.stdout)
    assert is_bind_mount == [True, False, False, False]


async def test_missing_file_is_invalid_input_and_special_file_is_se(sandbox_case: SandboxCase, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InvalidInput, match=r"files: .*missing cannot be opened"):
        await sandbox_case.sandbox.run(
            SandboxRunSpec(argv=("/work/p",), files=(InputFile("p", tmp_path / "missing", executable=True),))
        )
    for source in (tmp_path, tmp_path / "fifo", Path("/dev/null")):
        files = (InputFile("first", b""), InputFile("p", source, executable=True))
        report = await sandbox_case.sandbox.run(SandboxRunSpec(argv=("/work/p",), files=files))
        assert report.sandbox_error is not None, source
        assert (report.sandbox_error.step, report.sandbox_error.index) == ("file", 1)
    assert (await sandbox_case.run("echo", "works")).verdict is SandboxVerdict.OK


async def test_argv_and_env_size_is_limited(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.run(
        "echo", "a" * 100_000, *["b"] * 5_000, env={"LONG": "c" * 100_000}, within=limits(output_bytes=2 * MIB)
    )
    assert report.verdict is SandboxVerdict.OK
    assert b"arg 100000 aaa" in report.stdout
    assert report.stdout.count(b"arg 1 b\n") == 5_000
    assert b"env 100005 LONG=ccc" in report.stdout
    for argv in (("/work/x", "a" * 200_000), ("/work/x", *["b"] * 20_000), ("/work/x", *["c" * 100_000] * 20)):
        with pytest.raises(InvalidInput, match="argv"):
            SandboxRunSpec(argv=argv)
    with pytest.raises(InvalidInput):
        SandboxRunSpec(argv=("/work/x",), env={"A": "a" * 200_000})


@pytest.mark.parametrize("name", ["new\nline", "space name", "-rf", "ünï", "tab\t", "quote'\"$`", "deep/er/still"])
async def test_file_names_with_special_characters(sandbox_case: SandboxCase, tmp_path: Path, name: str) -> None:
    code = "import os, sys; name = sys.argv[1]; print(open(name).read()); os.rename(name, name + '2')"
    spec = sandbox_case.script(
        code, name, files=(InputFile(name, b"inside"),), collect=(f"{name}2",), collect_to=tmp_path
    )
    report = await sandbox_case.sandbox.run(spec)
    assert (report.verdict, report.stdout) == (SandboxVerdict.OK, b"inside\n"), report
    assert (tmp_path / f"{name}2").read_bytes() == b"inside"


async def test_environment_contains_only_requested_variables(sandbox_case: SandboxCase, host: HostState) -> None:
    report = await sandbox_case.run("echo", env={"ASKED": "yes"})
    names = {line.split(b" ", 2)[2].split(b"=")[0] for line in report.stdout.splitlines() if line.startswith(b"env ")}
    assert b"ASKED" in names
    assert names <= {b"ASKED", b"PATH", b"HOME", b"LANG", b"TMPDIR", b"LC_ALL"}
    assert host.canary.encode() not in report.stdout


async def test_missing_program_is_se_at_step_exec(sandbox_case: SandboxCase) -> None:
    report = await sandbox_case.sandbox.run(SandboxRunSpec(argv=("/work/not-there",), limits=SMALL))
    assert report.verdict is SandboxVerdict.SE
    assert report.sandbox_error is not None
    assert report.sandbox_error.step == "exec"
    assert report.sandbox_error.errno == 2
    assert "No such file" in report.sandbox_error.text


async def test_setup_failure_is_se_with_step_and_errno(sandbox_case: SandboxCase, host: HostState) -> None:
    missing = SandboxRunSpec(
        argv=("/usr/bin/true",), limits=SMALL, mounts=(Mount(host.folder, "/a"), Mount(host.folder / "no", "/b"))
    )
    report = await sandbox_case.sandbox.run(missing)
    assert report.verdict is SandboxVerdict.SE
    assert report.sandbox_error is not None
    assert (report.sandbox_error.errno, report.sandbox_error.index) == (2, 1)
    assert report.sandbox_error.step
    assert (await sandbox_case.run("static_noop")).verdict is SandboxVerdict.OK


async def test_stdin_from_bytes_file_descriptor_or_none(sandbox_case: SandboxCase, tmp_path: Path) -> None:
    body = os.urandom(100_000)
    file = tmp_path / "in"
    file.write_bytes(body)
    for source in (body, file):
        report = await sandbox_case.run("echo", stdin=source)
        assert report.stdout.endswith(body)
    with file.open("rb") as opened:
        assert (await sandbox_case.run("echo", stdin=opened.fileno())).stdout.endswith(body)
    assert (await sandbox_case.run("echo", stdin=None)).stdout.startswith(b"arg")


async def test_stdout_to_file(sandbox_case: SandboxCase, tmp_path: Path) -> None:
    target = tmp_path / "out"
    report = await sandbox_case.run("echo", "x", stdout=target)
    assert report.stdout == b""
    assert b"arg 1 x\n" in target.read_bytes()


async def test_runs_wait_for_free_slot(sandbox_case: SandboxCase) -> None:
    reports = await asyncio.gather(
        *(sandbox_case.run("echo", str(number), within=limits(cpu_ms=ms(1_000))) for number in range(12))
    )
    for number, report in enumerate(reports):
        assert f"arg {len(str(number))} {number}\n".encode() in report.stdout
