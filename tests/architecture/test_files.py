"""What holds for every tracked file: its size, and what it may not name."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_FILE_LINES = 450
_CODE = (".py", ".c", ".h")
_FOREIGN = re.compile(
    rb"https?://[^\s\"'<>)]*(?:pypi|pythonhosted|npmjs|debian|ubuntu|crates)\.(?:org|io|com)"
    rb"|(?<![\w.])/(?:home/\w+|Users/\w+|root/\.\w+)/" + (b"|" + re.escape(bytes(ROOT)) if len(ROOT.parts) > 2 else b"")
)
"""Registry hosts (a clone must work with any mirror) and paths of the machine that somebody works on."""


def _tracked() -> Iterator[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in listing.split(b"\0"):
        path = ROOT / name.decode()
        if name and path.is_file():
            yield path


def test_files_stay_short_enough_to_read() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in _tracked()
        if path.suffix in _CODE and (lines := len(path.read_bytes().splitlines())) > LONGEST_FILE_LINES
    }
    assert not long, f"over {LONGEST_FILE_LINES} lines: {long}"


def test_no_registry_host_and_no_path_of_a_machine() -> None:
    named = []
    for path in _tracked():
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if match := _FOREIGN.search(line):
                named.append(f"{path.relative_to(ROOT)}:{number}: {match.group().decode()}")
    assert not named, "\n".join(named)


def test_the_ci_entry_runs_the_same_command_as_people() -> None:
    entry = ROOT / ".ci" / "run"
    assert entry.stat().st_mode & 0o111
    assert entry.read_text().splitlines()[-1] == "exec make test"
