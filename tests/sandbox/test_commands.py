"""``adjudge doctor`` and ``adjudge run``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.forked_cli import ForkedCli
from tests.sandbox.host_state import HostState

pytestmark = pytest.mark.usefixtures("unchanged_host")

STRICT = {"ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP": "false"}


@pytest.fixture(scope="session")
def forked_cli() -> Iterator[ForkedCli]:
    """One server of the command line for all tests."""
    forked = ForkedCli()
    yield forked
    forked.close()


def test_doctor_json_reports_isolation() -> None:
    """In a new interpreter, as from a shell."""
    argv = [sys.executable, "-m", "adjudge", "doctor", "--json"]
    done = subprocess.run(argv, capture_output=True, check=False, env=os.environ | STRICT)
    body = json.loads(done.stdout)
    states = {check["name"]: check["state"] for check in body["checks"]}
    has_cgroup = states["cgroup accounting"] == "ok"
    assert (done.returncode, body["may_run_untrusted"]) == (0 if has_cgroup else 1, has_cgroup), body
    for name in ("mount namespace", "pid namespace", "network namespace", "seccomp", "privileges", "user"):
        assert states[name] == "ok"
    for check in body["checks"]:
        assert check["consequence"]
        assert check["state"] == "ok" or check["fix"]


def test_doctor_text_reports_isolation(forked_cli: ForkedCli) -> None:
    done = forked_cli.run("doctor")
    assert b"ok        seccomp" in done.stdout
    has_cgroup = b"ok        cgroup accounting" in done.stdout
    assert done.returncode == 0, "the tests allow running without a cgroup"
    assert (b"is safe to run on this machine" in done.stdout) is has_cgroup
    assert (b"ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true" in done.stdout) is not has_cgroup


def test_run_without_cgroup_requires_permission(forked_cli: ForkedCli) -> None:
    """With a cgroup, no permission is needed. Root has one; an unprivileged user usually does not."""
    source = json.loads(forked_cli.run("run", "--unsafe", "--json", "--", "true").stdout)["memory_source"]
    argv = [sys.executable, "-m", "adjudge", "run", "--", "true"]
    strict = os.environ | STRICT
    done = subprocess.run(argv, capture_output=True, check=False, env=strict)
    if source == "rlimit":
        assert done.returncode == 2
        assert b"ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP=true" in done.stderr
        allowed = subprocess.run([*argv[:4], "--unsafe", *argv[4:]], capture_output=True, check=False, env=strict)
        assert allowed.returncode == 0, allowed.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_run_writes_report_to_stderr(forked_cli: ForkedCli) -> None:
    done = forked_cli.run("run", "--", "python3", "-c", "import sys; print('out'); print('err', file=sys.stderr)")
    assert (done.returncode, done.stdout) == (0, b"out\n")
    report = done.stderr.decode().splitlines()
    assert report[0] == "err"
    assert report[-1].startswith("OK: exit code 0; CPU ")


@pytest.mark.parametrize(
    ("arguments", "code", "verdict", "limit"),
    [
        (("--", "python3", "-c", "raise SystemExit(7)"), 1, "RE", None),
        (("--wall-ms", "300", "--", "sleep", "100"), 1, "TLE", "wall"),
        (("--output-kib", "4", "--", "cat", "/dev/zero"), 1, "OLE", "output"),
        (("--memory-mib", "32", "--", "python3", "-c", "x = bytearray(1 << 28)"), 1, "MLE", "memory"),
        (("--", "/work/not-there"), 2, "SE", None),
    ],
)
def test_run_exit_code_separates_program_and_system_errors(
    forked_cli: ForkedCli, arguments: tuple[str, ...], code: int, verdict: str, limit: str
) -> None:
    done = forked_cli.run("run", "--json", *arguments)
    body = json.loads(done.stdout)
    assert (done.returncode, body["verdict"], body["limit"]) == (code, verdict, limit), body


def test_run_passes_files_stdin_mounts_and_env(forked_cli: ForkedCli, host: HostState, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os\nprint(input(), open('/data/answer.txt').read(), os.environ['A'])\nopen('made','w').write('x')"
    )
    done = forked_cli.run(
        "run", "--file", f"program.py={program}", "--mount", f"{host.secret.parent}:/data", "--env", "A=b=c",
        "--stdin", "-", "--collect", "made", "--collect-to", str(tmp_path), "--", "python3", "program.py",
        stdin=b"hello\n",
    )  # fmt: skip
    assert done.stdout.decode() == f"hello {host.canary} b=c\n", done.stderr
    assert (tmp_path / "made").read_text() == "x"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--file", "../x=/etc/hostname", "--", "true"), "files"),
        (("--file", "x=/not/there", "--", "true"), "--file"),
        (("--file", "nothing", "--", "true"), "--file"),
        (("--mount", "/etc:relative", "--", "true"), "mounts"),
        (("--mount", "/not/there:/data", "--", "true"), "--mount"),
        (("--stdin", "/not/there", "--", "true"), "--stdin"),
        (("--cpu-ms", "0", "--", "true"), "cpu_ms"),
        (("--", "no-such-program-anywhere"), "argv"),
        (("--", "../../bin/sh"), "argv"),
        ((), "ARGV"),
    ],
)
def test_run_names_invalid_option(forked_cli: ForkedCli, arguments: tuple[str, ...], named: str) -> None:
    done = forked_cli.run("run", *arguments)
    assert (done.returncode, done.stdout) == (3, b"")
    assert named in done.stderr.decode()
