"""``adjudge gc`` deletes unreferenced files, but no recent uploads."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.cli import main
from adjudge.domain.ids import new_id
from adjudge.store import Tx, open_database
from adjudge.store.accounts import users
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models

DAY_SEC = 86_400


async def _fill(folder: Path) -> tuple[str, str, str]:
    """Store a source in use and an unused file, both three days old, and a new file; return their digests."""
    blobs = DirectoryBlobStore(folder / "blobs")
    used, unused = await blobs.put(b"used"), await blobs.put(b"unused")
    three_days_ago = time.time() - 3 * DAY_SEC
    for path in (folder / "blobs").rglob("*"):
        if path.is_file():
            os.utime(path, (three_days_ago, three_days_ago))
    fresh = await blobs.put(b"fresh")
    user, problem, revision = new_id(), new_id(), new_id()

    async def create(tx: Tx) -> None:
        await users.insert(tx, users.NewUser(user, "person"))
        await problem_commands.insert(tx, problem_models.NewProblem(problem, "sum", "Sum", user))
        await problem_commands.add_revision(tx, problem_models.NewRevision(revision, problem, "plain", "m" * 64, user))
        new = NewSubmission(new_id(), user, problem, revision, "cpp", used, 4)
        await SubmissionCommands(JobCommands({})).submit(tx, [new])

    async with open_database(f"sqlite:///{folder / 'adjudge.db'}") as database:
        await database.transact(create)
    return used, unused, fresh


def test_unreferenced_files_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", f"sqlite:///{tmp_path / 'adjudge.db'}")
    used, unused, fresh = asyncio.run(_fill(tmp_path))
    blobs = DirectoryBlobStore(tmp_path / "blobs")

    def exist() -> list[bool]:
        return [asyncio.run(blobs.exists(digest)) for digest in (used, unused, fresh)]

    dry = CliRunner().invoke(main, ["gc", "--dry-run"])
    assert dry.output == "1 files (6 bytes) would be deleted, 1 in use.\n"
    assert exist() == [True, True, True]
    done = CliRunner().invoke(main, ["gc"])
    assert done.output == "1 files (6 bytes) deleted, 1 in use.\n"
    assert exist() == [True, False, True]


def test_too_short_grace_period_is_refused() -> None:
    assert CliRunner().invoke(main, ["gc", "--grace-hours", "0"]).exit_code == 3
