"""The command table and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from adjudge import __version__
from adjudge.cli import COMMANDS, LazyCommand, main
from adjudge.domain.errors import AdjudgeError, InternalFault, InvalidInput, NotFound


def _with_command(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setitem(main.commands, "pretend", command)


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (InvalidInput("time_ms: -1 is too small; give at least 1."), 3, "time_ms: -1 is too small"),
        (NotFound("problem", "a-plus-b"), 3, "[PROBLEM_NOT_FOUND]"),
        (InternalFault(), 2, "[INTERNAL_FAULT]"),
    ],
)
def test_error_sets_message_and_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: AdjudgeError, exit_code: int, words: str
) -> None:
    _with_command(monkeypatch, error)
    result = CliRunner().invoke(main, ["pretend"])
    assert result.exit_code == exit_code
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_unexpected_error_is_an_internal_error_with_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    _with_command(monkeypatch, ZeroDivisionError("seven by nothing"))
    result = CliRunner().invoke(main, ["pretend"])
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "seven by nothing" in result.stderr


@pytest.mark.parametrize("argv", [["no-such-command"], ["--no-such-option"], ["config", "--no-such-option"]])
def test_wrong_usage_exits_with_3(argv: list[str]) -> None:
    result = CliRunner().invoke(main, argv)
    assert result.exit_code == 3
    assert "No such" in result.stderr


def _every_command(group: click.Group = main) -> Iterator[tuple[str, click.Command, click.Command]]:
    """The names to call it by, what stands for it in the list above it, and itself; down to the last."""
    for name, listed in group.commands.items():
        command = listed.load() if isinstance(listed, LazyCommand) else listed
        yield name, listed, command
        if isinstance(command, click.Group):
            for below, listed_below, command_below in _every_command(command):
                yield f"{name} {below}", listed_below, command_below


def test_every_command_has_help_equal_to_its_summary() -> None:
    for name, listed, command in _every_command():
        result = CliRunner().invoke(main, [*name.split(), "--help"], prog_name="adjudge")
        assert result.exit_code == 0, (name, result.output)
        assert f"adjudge {name}" in result.stdout
        for width in (20, 45, 80, 1000):
            assert listed.get_short_help_str(width) == command.get_short_help_str(width), name
    listing = CliRunner().invoke(main, ["--help"])
    assert all(f"  {name} " in listing.stdout for name, command in COMMANDS.items() if not command.hidden)


HEAVY = {
    "alembic",
    "asyncpg",
    "fastapi",
    "httpx",
    "jinja2",
    "jsonschema",
    "obstore",
    "prometheus_client",
    "pydantic",
    "redis",
    "sqlalchemy",
    "uvicorn",
    "yaml",
}
IMPORTED = "import sys; from adjudge.cli import main; main(standalone_mode=False); print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize(
    ("line", "unwanted"),
    [
        ("--help", {*HEAVY, "asyncio", "rich"}),
        ("problem --help", {*HEAVY, "asyncio", "rich"}),
        ("run --help", HEAVY),
        ("judge --help", HEAVY - {"prometheus_client", "yaml"}),
        ("check --help", HEAVY - {"prometheus_client"}),
        ("problem verify --help", HEAVY - {"prometheus_client", "yaml"}),
        ("submit --help", HEAVY - {"httpx"}),
        ("gc --help", HEAVY),
        ("user --help", HEAVY - {"prometheus_client"}),
        ("dlq --help", HEAVY - {"jsonschema", "prometheus_client"}),
        ("worker --help", {"alembic", "asyncpg", "fastapi", "obstore", "pydantic", "redis", "sqlalchemy"}),
        pytest.param("up --help", {"alembic", "asyncpg", "obstore", "redis", "sqlalchemy"}, marks=pytest.mark.slow),
    ],
)
def test_command_imports_only_what_it_needs(line: str, unwanted: set[str]) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTED, *line.split()], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert "adjudge.cli" in imported
    assert not unwanted & imported


def test_command_on_sqlite_imports_no_server_and_no_postgres(tmp_path: Path) -> None:
    environment = {"ADJUDGE_DATA_DIR": str(tmp_path), "ADJUDGE_DATABASE_URL": f"sqlite:///{tmp_path}/a.db"}
    making = ("user add ada", {"fastapi", "jinja2", "uvicorn"})
    for line, unwanted in (making, ("user list", HEAVY - {"prometheus_client"})):
        argv = [sys.executable, "-c", IMPORTED, *line.split()]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        imported = set(done.stderr.split())
        assert "adjudge.store.engine.sqlite" in imported
        assert not unwanted & imported


def test_completion_imports_no_commands() -> None:
    environment = {"_ADJUDGE_COMPLETE": "bash_complete", "COMP_WORDS": "adjudge work", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "adjudge"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.split() == ["plain,worker", "plain,workers"]
    assert "adjudge.cli.worker" not in done.stderr


def test_version() -> None:
    assert __version__ in CliRunner().invoke(main, ["--version"]).stdout


def test_config_shows_values_sources_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", "postgresql://judge:hunter2@db/adjudge")
    monkeypatch.setenv("JOB_LEASE_SEC", "20")
    for argv in (["config"], ["config", "--json"]):
        result = CliRunner().invoke(main, argv)
        assert result.exit_code == 0
        assert "hunter2" not in result.output
        assert "environment JOB_LEASE_SEC" in result.stdout
    rows = json.loads(CliRunner().invoke(main, ["config", "--json"]).stdout)
    assert rows["jobs.lease_sec"] == {
        "value": 20.0,
        "source": "environment JOB_LEASE_SEC",
        "variable": "ADJUDGE_JOB_LEASE_SEC",
    }


def test_piped_output_is_not_wrapped() -> None:
    """A table that is piped into another program is not broken at the width of a terminal that is not there."""
    done = CliRunner().invoke(main, ["languages"])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert len([line for line in lines if line.startswith("cpp17")]) == 1
    assert any(len(line) > 80 for line in lines)
