"""``adjudge contest export`` and ``import`` of packages, against a real server."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.support.contest_cli import log_in, run, shown
from tests.support.http_server import RunningServer

pytestmark = pytest.mark.slow


def test_contest_is_exported_and_imported(contest: str, server: RunningServer, tmp_path: Path) -> None:
    log_in(server, "ada")
    target = tmp_path / "spring.zip"
    exported = run("export", contest, str(target), "--without-submissions")
    assert exported.exit_code == 0, exported.output
    assert exported.output == f"{target}: {target.stat().st_size} bytes\n"
    wrong = run("export", contest, "scoreboard.doc")
    assert (wrong.exit_code, "ends with .zip" in wrong.stderr) == (3, True)

    seen = shown("import", str(target), "--slug", "copy", "--dry-run")
    assert (seen["is_preview"], seen["findings"]) == (True, [])
    assert "copy" not in run("list").output
    done = run("import", str(target), "--slug", "copy")
    assert (done.exit_code, done.output.endswith("copy: imported\n")) == (0, True), done.output
    assert run("import", str(target), "--slug", "copy").output == "copy: unchanged\n"

    folder = tmp_path / "folder"
    with zipfile.ZipFile(target) as archive:
        archive.extractall(folder)
    document = json.loads((folder / "contest.json").read_text())
    (folder / "contest.json").write_text(json.dumps(document | {"duration": "long"}))
    refused = run("import", str(folder), "--dry-run")
    assert (refused.exit_code, "contest.json:1: error: duration: 'long' is not a duration." in refused.output) == (
        1,
        True,
    )
    assert run("import", str(folder)).exit_code == 3
