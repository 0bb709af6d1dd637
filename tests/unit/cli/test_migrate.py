"""``adjudge migrate`` on SQLite; integration/store tests the migrations themselves."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adjudge.cli import main
from adjudge.store import migrations
from tests.support.migrations import add_extra_migration


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "a folder" / "judge.db"
    path.parent.mkdir()
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", f"sqlite:///{path}")
    monkeypatch.setenv("ADJUDGE_DATA_DIR", str(tmp_path))
    return path


@pytest.fixture
def migrated(file: Path, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database at the latest revision, of a program that has two: the baseline and one more."""
    file.write_bytes(sqlite_template.read_bytes())
    add_extra_migration(tmp_path / "versions", monkeypatch)
    asyncio.run(migrations.upgrade(f"sqlite:///{file}"))
    return file


def _run(*argv: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["migrate", *argv], input=given)


def _before() -> str:
    return migrations.steps()[0].revision


def test_status_of_a_current_database(migrated: Path) -> None:
    result = _run("status")
    assert (result.exit_code, "Up to date." in result.output) == (0, True)
    document = json.loads(_run("status", "--json").output)
    assert document == {"current": migrations.latest_revision(), "newest": migrations.latest_revision(), "pending": []}


def test_check_shows_pending_migrations_and_no_subcommand_applies_them(migrated: Path) -> None:
    assert _run("--check").exit_code == 0
    _run("down", _before(), "--yes")
    checked = _run("--check")
    assert (checked.exit_code, "1 migrations pending" in checked.output) == (1, True)
    assert _run().exit_code == 0
    assert _run("--check").exit_code == 0
    assert "cannot be used with a subcommand" in _run("--check", "up").stderr


def test_downgrade_and_upgrade_keep_rows(migrated: Path) -> None:
    CliRunner().invoke(main, ["user", "add", "grace", "--role", "admin"])
    done = _run("down", _before(), "--yes")
    assert done.exit_code == 0, done.output
    assert f"undo  {migrations.latest_revision()}" in done.output
    assert f"Install the version with latest revision {_before()}" in done.output
    shown = _run("status")
    assert (shown.exit_code, "1 migrations pending" in shown.output) == (1, True)
    assert json.loads(_run("status", "--json").output)["pending"][0]["revision"] == migrations.latest_revision()
    assert _run("up").exit_code == 0
    assert _run("status").exit_code == 0
    with closing(sqlite3.connect(migrated)) as connection:
        assert connection.execute("SELECT name FROM users").fetchall() == [("grace",)]


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_downgrade_requires_confirmation(migrated: Path, answer: str) -> None:
    result = _run("down", _before(), given=answer)
    assert result.exit_code == 1
    assert "Is there a backup" in result.output
    assert asyncio.run(migrations.current(f"sqlite:///{migrated}")) == migrations.latest_revision()


def test_downgrade_after_confirmation(migrated: Path) -> None:
    assert _run("down", _before(), given="y\n").exit_code == 0
    assert asyncio.run(migrations.current(f"sqlite:///{migrated}")) == _before()


@pytest.mark.parametrize("wrong", ["9999", "base", "head", "", "1", "-1"])
def test_unknown_revision_is_rejected(migrated: Path, wrong: str) -> None:
    result = _run("down", "--yes", "--", wrong)
    assert (result.exit_code, "unknown revision" in result.output) == (3, True), result.output


def test_downgrade_to_the_current_revision_is_rejected(migrated: Path) -> None:
    result = _run("down", migrations.latest_revision(), "--yes")
    assert (result.exit_code, "nothing to revert" in result.output) == (3, True)


def test_newer_schema_is_not_changed(migrated: Path) -> None:
    with closing(sqlite3.connect(migrated)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    for argv in (["status"], ["up"], ["down", _before(), "--yes"]):
        result = _run(*argv)
        assert (result.exit_code, "schema revision 9999 is newer" in result.output) == (3, True), argv


def test_status_creates_no_database(file: Path) -> None:
    for argv in (["status"], ["up"], ["down", _before(), "--yes"]):
        result = _run(*argv)
        assert (result.exit_code, "Database not found" in result.output) == (3, True), argv
    assert not file.exists()


def test_every_migration_has_a_title() -> None:
    for step in migrations.steps():
        assert len(step.title) > 10, step
        assert not step.title.startswith(step.revision), step
