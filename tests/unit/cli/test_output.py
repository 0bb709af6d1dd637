"""Output of commands for runs, triggers and workers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from adjudge.cli import chain, chain_runs, main, references, workers
from adjudge.registry import LiveProcess, ProcessInfo
from adjudge.schema.chain_runs import ChainRunRead, NodeRead
from adjudge.schema.chains import ChainRead, TriggerRead
from adjudge.settings import Settings

RUN = ChainRunRead.from_json(
    {
        "id": "r-1",
        "number": 12,
        "chain_name": "release",
        "status": "success",
        "started_by": "ada",
        "nodes_total": 2,
        "nodes_open": 0,
        "nodes_failed": 0,
        "created_at": "now",
        "finished_at": "now",
    }
)


def _node(status: str, artifact: Any = None) -> NodeRead:
    return NodeRead.from_json(
        {"node_id": "ask", "type": "wait_approval", "status": status, "attempt": 1, "artifact": artifact}
    )


class _Server:
    """What the commands ask a client for."""

    def run_watch(self, run_id: str) -> Iterator[NodeRead | ChainRunRead]:
        yield from (_node("pending"), _node("pending"), _node("running", {"question": "Publish [b]it[/b]?"}))
        yield from (_node("success", {"approved": True}), RUN)

    def run(self, run_id: str) -> ChainRunRead:
        return RUN

    def run_by_number(self, chain: str, number: int) -> ChainRunRead:
        assert (chain, number) == ("release", 12)
        return RUN

    def run_wait(self, run_id: str) -> ChainRunRead:
        return RUN

    def chain(self, name: str) -> ChainRead:
        dag = {"nodes": [{"id": "say", "type": "noop"}]}
        return ChainRead.from_json(
            {"id": "c-1", "name": name, "enabled": True, "version": 1, "updated_at": "now", "dag": dag}
        )

    def chain_triggers(self, name: str) -> list[TriggerRead]:
        return [
            TriggerRead.from_json(item)
            for item in (
                {"id": "t-1", "name": "hook", "kind": "webhook", "spec": {"parameters": {"é": True}}, "enabled": True},
                {"id": "t-2", "name": "nightly", "kind": "cron", "spec": {"cron": "0 3 * * *"}, "enabled": False},
            )
        ]


@pytest.fixture(autouse=True)
def _connect(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def connected(server: str | None) -> Iterator[_Server]:
        yield _Server()

    monkeypatch.setattr(chain, "open_client", connected)
    monkeypatch.setattr(chain_runs, "open_client", connected)


def test_followed_run_prints_approvals_and_no_duplicates() -> None:
    expected = [
        "pending ask",
        "running ask  Publish [b]it[/b]?  approval required: adjudge chain approve release#12 ask --reason …",
        "success ask",
        "success release#12 r-1",
    ]
    for reference in ("r-1", "release#12"):
        printed = CliRunner().invoke(main, ["chain", "run", reference, "--follow"]).output
        assert printed.splitlines() == expected


@pytest.mark.parametrize(
    ("name", "argument"), [("release", "release#12"), ("after dark", "'after dark#12'"), ("a#b", "a#b#12")]
)
def test_run_reference_is_quoted_where_the_shell_needs_it(name: str, argument: str) -> None:
    assert references.run_argument(dataclasses.replace(RUN, chain_name=name)) == argument


def test_webhook_trigger_is_shown_with_its_url() -> None:
    printed = CliRunner().invoke(main, ["chain", "show", "release"]).output
    expected = 'trigger hook: webhook {"parameters": {"é": true}}, URL: POST /api/v1/triggers/t-1:call'
    assert expected in printed.splitlines()
    assert 'trigger nightly: cron {"cron": "0 3 * * *"}, disabled' in printed.splitlines()


def test_workers_show_version_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    languages = {"python3": "Python 3.11.2 (main, Apr 28 2025) [GCC 12.2.0]", "c": "12.2.0", "tcl": "unknown"}

    async def found(_: Settings) -> list[LiveProcess]:
        return [LiveProcess(ProcessInfo("w-1", "host", 1, "1.0", 2, languages), 9.0, 1.0)]

    monkeypatch.setattr(workers, "_list", found)
    assert "c 12.2.0, python3 3.11.2, tcl unknown" in CliRunner().invoke(main, ["workers"]).output
    assert "GCC" in CliRunner().invoke(main, ["workers", "--json"]).output


@pytest.mark.parametrize("argv", [("workers",), ("dlq", "list"), ("gc",), ("user", "list")])
def test_command_without_database_fails_and_creates_none(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADJUDGE_DATABASE_URL", raising=False)
    answer = CliRunner().invoke(main, argv)
    assert (answer.exit_code, "Database not found: var/adjudge.db" in answer.output) == (3, True)
    assert not list(tmp_path.iterdir()), "least of all an empty database is made"
