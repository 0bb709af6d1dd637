"""``adjudge judging`` and the subcommands of ``adjudge workers`` on SQLite."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.cli import main
from adjudge.store import open_database


@pytest.fixture(autouse=True)
def _database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", url)

    async def create() -> None:
        async with open_database(url):
            pass

    asyncio.run(create())


def _run(*argv: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(argv))
    return result.exit_code, result.output


def test_judging_is_paused_listed_and_resumed() -> None:
    assert _run("judging", "list") == (0, "Nothing is paused.\n")
    assert _run("judging", "pause", "--language", "cpp17", "--reason", "new compiler") == (0, "paused: cpp17\n")
    code, output = _run("judging", "list", "--json")
    (pause,) = json.loads(output)
    assert (code, pause["scope"], pause["subject"], pause["reason"]) == (0, "language", "cpp17", "new compiler")
    assert pause["actor"].startswith("cli:")
    assert _run("judging", "resume", "--language", "cpp17", "--reason", "done") == (0, "resumed: cpp17\n")
    assert _run("judging", "list") == (0, "Nothing is paused.\n")


def test_exactly_one_target_is_needed() -> None:
    for argv in ([], ["--all", "--problem", "sum"]):
        code, output = _run("judging", "pause", *argv, "--reason", "x")
        assert code != 0
        assert "exactly one of --all, --language and --problem" in output


def test_unknown_worker_is_refused() -> None:
    code, output = _run("workers", "pause", "nobody", "--reason", "x")
    assert code != 0
    assert "WORKER_NOT_FOUND" in output
