"""Backups: contents, refusals, damage, and restoring."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.cli import main
from adjudge.domain.errors import BackupDamaged, Conflict, Unavailable
from adjudge.domain.ids import new_id
from adjudge.services.backup import create_backup, restore_backup, verify_backup
from adjudge.store import Tx, open_database
from adjudge.store.accounts import users
from adjudge.store.engine.statement import Statement
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.commands import SubmissionCommands
from adjudge.store.judging.models import NewSubmission
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models


class Installation:
    """A database with a submission whose source is a blob, and a blob that nothing refers to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "adjudge.db"
        self.blobs = DirectoryBlobStore(folder / "blobs")
        self.source = self.unused = ""

    async def fill(self) -> Installation:
        self.source, self.unused = await self.blobs.put(b"int main() {}" * 5_000), await self.blobs.put(b"unused")
        user, problem, revision = new_id(), new_id(), new_id()

        async def create(tx: Tx) -> None:
            await users.insert(tx, users.NewUser(user, "person"))
            await problem_commands.insert(tx, problem_models.NewProblem(problem, "sum", "Sum", user))
            await problem_commands.add_revision(
                tx, problem_models.NewRevision(revision, problem, "plain", "0" * 64, user)
            )
            new = NewSubmission(new_id(), user, problem, revision, "cpp", self.source, 65_000)
            await SubmissionCommands(JobCommands({})).submit(tx, [new])

        async with open_database(self.url) as database:
            await database.transact(create)
        return self

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"

    async def names(self) -> list[str]:
        select = Statement("test.names", "Asked by a test.", "SELECT name FROM users ORDER BY name")
        async with open_database(self.url) as database:
            return [row["name"] for row in await database.read(lambda tx: tx.fetch(select))]


@pytest.fixture
async def installation(tmp_path: Path) -> Installation:
    (tmp_path / "old").mkdir()
    return await Installation(tmp_path / "old").fill()


async def test_backup_contains_the_database_and_its_blobs_only(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar"
    manifest = await create_backup(installation.database, installation.blobs, file)
    with tarfile.open(file) as archive:
        names = archive.getnames()
    assert names == ["manifest.json", "blobs.txt", "adjudge.db", f"blobs/{installation.source}"]
    assert (manifest.blob_count, manifest.missing) == (1, [])
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert await verify_backup(file) == manifest


async def test_restored_installation_equals_the_old_one(installation: Installation, tmp_path: Path) -> None:
    file, new = tmp_path / "backup.tar", Installation(tmp_path / "new" / "data")
    await create_backup(installation.database, installation.blobs, file)
    await restore_backup(file, new.database, new.blobs)
    assert await new.names() == ["person"]
    assert b"".join([chunk async for chunk in new.blobs.open(installation.source)]) == b"int main() {}" * 5_000
    assert not await new.blobs.exists(installation.unused)


async def test_backup_overwrites_nothing(installation: Installation, tmp_path: Path) -> None:
    file = tmp_path / "backup.tar"
    file.write_text("precious")
    with pytest.raises(Conflict, match="exists"):
        await create_backup(installation.database, installation.blobs, file)
    assert file.read_text() == "precious"


async def test_missing_blob_is_recorded(installation: Installation, tmp_path: Path) -> None:
    await installation.blobs.delete(installation.source)
    manifest = await create_backup(installation.database, installation.blobs, tmp_path / "backup.tar")
    assert manifest.missing == [installation.source]
    assert (await verify_backup(tmp_path / "backup.tar")).missing == [installation.source]


async def test_restore_replaces_a_database_only_on_request_and_if_unused(
    installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "backup.tar"
    await create_backup(installation.database, installation.blobs, file)
    async with open_database(installation.url) as database:
        await database.transact(lambda tx: users.insert(tx, users.NewUser(new_id(), "later")))
        with pytest.raises(Conflict, match="--replace"):
            await restore_backup(file, installation.database, installation.blobs)
        with pytest.raises(Conflict, match="in use"):
            await restore_backup(file, installation.database, installation.blobs, replace=True)
    assert await installation.names() == ["later", "person"]
    await restore_backup(file, installation.database, installation.blobs, replace=True)
    assert await installation.names() == ["person"]
    assert sorted(path.name for path in installation.folder.iterdir()) == ["adjudge.db", "blobs"]


def _flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "not a tar archive": lambda _: b"hello" * 1_000,
    "another tar archive": lambda _: _archive({"README": b"hello"}),
    "truncated in the database": lambda data: data[:30_000],
    "truncated in a blob": lambda data: data[: data.index(b"int main") + 5_000],
    "truncated before the first blob": lambda data: data[: data.index(b"blobs/")],
    "byte of a blob": lambda data: _flip(data, data.index(b"int main") + 7),
    "byte of the database": lambda data: _flip(data, data.index(b"SQLite format 3") + 5_000),
    "byte of the list": lambda data: _flip(data, data.index(b"blobs.txt") + 520),
    "byte of a header": lambda data: _flip(data, data.index(b"blobs/") + 3),
}


def _archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_backup_is_named_and_restores_no_database(
    installation: Installation, tmp_path: Path, damage: str
) -> None:
    file, new = tmp_path / "backup.tar", Installation(tmp_path / "new")
    await create_backup(installation.database, installation.blobs, file)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.raises(BackupDamaged, match=r"backup\.tar: ") as verified:
        await verify_backup(file)
    if damage == "byte of a blob":
        assert installation.source in verified.value.message
    with pytest.raises(BackupDamaged, match=r"backup\.tar: "):
        await restore_backup(file, new.database, new.blobs)
    assert not list(new.folder.glob("adjudge.db*"))


async def test_copy_during_writes_of_another_connection_is_consistent(
    installation: Installation, tmp_path: Path
) -> None:
    """Each transaction inserts two users; a copy never has one of them alone."""
    async with open_database(installation.url) as database:
        done = asyncio.Event()

        async def write() -> None:
            number = 0
            while not done.is_set():
                number += 1

                async def insert(tx: Tx, number: int = number) -> None:
                    for suffix in ("a", "b"):
                        await users.insert(tx, users.NewUser(new_id(), f"pair-{number}-{suffix}"))

                await database.transact(insert)

        writing = asyncio.create_task(write())
        for number in range(5):
            await create_backup(installation.database, installation.blobs, tmp_path / f"{number}.tar")
        done.set()
        await writing
    counts = []
    for number in range(5):
        new = Installation(tmp_path / f"new-{number}")
        await restore_backup(tmp_path / f"{number}.tar", new.database, new.blobs)
        counts.append(len(await new.names()) - 1)
    assert [count % 2 for count in counts] == [0] * 5
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def _call(*argv: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in argv])


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "old").mkdir()
    installation = asyncio.run(Installation(tmp_path / "old").fill())
    file = tmp_path / "backup.tar"
    monkeypatch.setenv("ADJUDGE_DATA_DIR", str(installation.folder))
    assert _call("backup", file).exit_code == 0
    assert _call("backup", file).exit_code == 3
    checked = _call("verify-backup", file)
    assert (checked.exit_code, "1 files" in checked.stdout) == (0, True)
    assert "[CONFLICT]" in _call("restore", file).stderr
    assert _call("restore", file, "--replace").exit_code == 0
    asyncio.run(installation.blobs.delete(installation.source))
    incomplete = _call("backup", tmp_path / "second.tar")
    assert (incomplete.exit_code, installation.source in incomplete.stderr) == (1, True)
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", "postgresql://nobody@127.0.0.1/none")
    assert "pg_dump" in _call("restore", file).stderr


async def test_backup_of_a_newer_schema_is_refused(installation: Installation, tmp_path: Path) -> None:
    file, new = tmp_path / "backup.tar", Installation(tmp_path / "new")
    await create_backup(installation.database, installation.blobs, file)
    file.write_bytes(file.read_bytes().replace(b'"schema_revision": "0001"', b'"schema_revision": "9001"'))
    with pytest.raises(Conflict, match="newer"):
        await restore_backup(file, new.database, new.blobs)


async def test_damaged_database_is_not_backed_up(installation: Installation, tmp_path: Path) -> None:
    connection = sqlite3.connect(installation.database)
    connection.execute("PRAGMA foreign_keys=OFF")
    connection.execute("DELETE FROM problems")
    connection.commit()
    connection.close()
    with pytest.raises(Unavailable, match="damaged"):
        await create_backup(installation.database, installation.blobs, tmp_path / "backup.tar")
    assert not (tmp_path / "backup.tar").exists()
