"""``adjudge dlq`` on SQLite: list, show, replay, discard and errors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.cli import main
from adjudge.domain.ids import new_id
from adjudge.store import Tx, open_database
from adjudge.store.jobs import dead_letters
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import NewJob, PoisonJob


@pytest.fixture
def dead_letter_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ID of a dead letter in a new database."""
    url = f"sqlite:///{tmp_path}/dlq.db"
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", url)

    async def dead_letter() -> str:
        jobs, job_id = JobCommands({}), new_id()

        async def do(tx: Tx) -> None:
            await jobs.enqueue(tx, [NewJob(job_id, "execute")])
            await jobs.dead_letter(tx, [PoisonJob(job_id, "NO_HANDLER", "nobody executes here")], actor="worker")

        async with open_database(url) as database:
            await database.transact(do)
            return (await database.read(dead_letters.page))[0].id

    return asyncio.run(dead_letter())


def _run(*argv: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["dlq", *argv])
    return result.exit_code, result.output


def test_list_and_show_print_the_error(dead_letter_id: str) -> None:
    code, output = _run("list", "--json")
    assert (code, [row["id"] for row in json.loads(output)]) == (0, [dead_letter_id])
    code, output = _run("show", dead_letter_id, "--json")
    shown = json.loads(output)
    assert (code, shown["error_code"], shown["error"]) == (0, "NO_HANDLER", "nobody executes here")
    assert shown["attempts"] == []


def test_replay_creates_one_new_job(dead_letter_id: str) -> None:
    code, output = _run("replay", dead_letter_id, "--reason", "handler installed", "--as", "ops")
    assert code == 0
    assert dead_letter_id in output
    code, output = _run("replay", dead_letter_id, "--reason", "again", "--as", "ops")
    assert code == 3
    assert "CONFLICT" in output
    code, output = _run("list", "--state", "replayed", "--json")
    assert [(row["resolved_by"], row["note"]) for row in json.loads(output)] == [("cli:ops", "handler installed")]


def test_discard_is_all_or_none(dead_letter_id: str) -> None:
    code, output = _run("discard", dead_letter_id, new_id(), "--reason", "gone", "--as", "ops")
    assert code == 3
    assert "DEAD_LETTER_NOT_FOUND" in output
    assert json.loads(_run("list", "--json")[1]), "nothing was discarded"
    assert _run("discard", dead_letter_id, "--reason", "gone", "--as", "ops") == (0, "1 discarded\n")
    assert _run("list")[1] == "No open dead letters.\n"


def test_reason_is_required(dead_letter_id: str) -> None:
    code, output = _run("replay", dead_letter_id)
    assert code == 3
    assert "--reason" in output


def test_replay_by_filter_takes_what_matches(dead_letter_id: str) -> None:
    code, output = _run("replay", "--reason", "fixed")
    assert code != 0
    assert "--error-code" in output
    code, output = _run("replay", "--error-code", "OTHER", "--reason", "fixed")
    assert (code, output.strip()) == (0, "No open dead letter matches.")
    code, output = _run("replay", "--kind", "execute", "--reason", "fixed")
    assert code == 0
    assert dead_letter_id in output
    assert _run("discard", "--all", "--reason", "old") == (0, "0 discarded\n")
