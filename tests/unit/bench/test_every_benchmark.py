"""Every benchmark runs to its end where no other project is installed, and says what it did not measure."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import peers, sandbox_peers
from bench.__main__ import NO_SERVER, main, names
from bench.harness import sized
from bench.sandbox_peers import find_peers
from tests.support.install import ROOT, InstallError

TRUE = Path("/bin/true")


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_benchmark_without_peers_ends_with_complete_rows(name: str, tmp_path: Path) -> None:
    rows_file = tmp_path / "rows.json"
    env = {**os.environ, "SMOKE": "1", "PEERS": "none", "JSON": str(rows_file)}
    done = subprocess.run(
        [sys.executable, "-m", "bench", name], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode == NO_SERVER and os.environ.get("CI") != "true":
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr[-4_000:]
    document = json.loads(rows_file.read_text())
    assert document["bench"] == name
    measured = [row for row in document["rows"] if row["value"] is not None]
    assert len(measured) >= 6
    for row in document["rows"]:
        assert row["value"] is not None or re.match(r"not measured: .+", row["against"]), row
        assert row["name"] in done.stdout


def test_make_help_lists_the_benchmarks_and_nothing_else() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"make bench-([a-z]+)$", done.stdout, re.MULTILINE)
    assert sorted(listed) == names()
    assert {"sandbox", "queue", "chains", "api"} <= set(listed)


def test_unknown_benchmark_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["bench"], ["bench", "ours"], ["bench", "harness"], ["bench", "api", "web"]):
        assert main(argv) == 2
        assert "There are: api, chains," in capsys.readouterr().out


def test_former_name_runs_the_renamed_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: list[str] = []
    monkeypatch.setattr(runpy, "run_module", lambda module, **_: modules.append(module))
    assert main(["bench", "drive"]) == 0
    assert modules == ["bench.queue"]


def test_each_unavailable_peer_has_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_apt(packages: object) -> None:
        raise InstallError("not root, so apt cannot be used")

    failure = "x.h:25:10: fatal error: seccomp.h: No such file or directory\nERROR: Failed building wheel for dmoj\n"
    monkeypatch.delenv("PEERS", raising=False)
    monkeypatch.setattr(peers, "PEERS", tmp_path)
    monkeypatch.setattr(peers, "install_with_apt", no_apt)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", failure))
        found = find_peers(TRUE)
    assert [peer.run for peer in found] == [None] * 5
    reasons = {peer.name: peer.why_not for peer in found}
    assert reasons["bubblewrap"] == "not root, so apt cannot be used; install the package bubblewrap"
    assert reasons["DMOJ"].startswith("pip install dmoj failed (it needs libseccomp-dev): ")
    assert "seccomp.h: No such file or directory" in reasons["DMOJ"]


def test_dmoj_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ImportError: libseccomp.so.2: cannot open' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sandbox_peers, "install", lambda *_, **__: "")
    monkeypatch.setattr(sandbox_peers, "python_of", lambda _name: python)
    peer = sandbox_peers._dmoj()
    assert peer.run is None
    assert peer.why_not == (
        "its executor does not start here: it ended with 1: ImportError: libseccomp.so.2: cannot open"
    )


def test_peer_that_is_installed_and_cannot_run_says_why() -> None:
    def refuse(_argv: tuple[str, ...], _stdin: Path | None) -> None:
        raise RuntimeError("failed 255: ptrace: Operation not permitted")

    peer = sandbox_peers._tried(sandbox_peers.Peer("DMOJ", refuse), TRUE)
    assert peer.run is None
    assert "ptrace: Operation not permitted" in peer.why_not


def test_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QUICK", "SMOKE"):
        monkeypatch.delenv(name, raising=False)
    assert sized(full=9, quick=3, smoke=1) == 9
    monkeypatch.setenv("QUICK", "1")
    assert (sized(full=9, quick=3, smoke=1), sized(full=9, smoke=1)) == (3, 9)
    monkeypatch.setenv("SMOKE", "1")
    assert (sized(full=9, quick=3, smoke=1), sized(full=9, smoke=1)) == (1, 1)
