"""The queue benchmark: the progress of its processes matches the rows."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from adjudge.store import migrations, open_database
from adjudge.store.jobs import outbox
from bench import peers, queue, queue_systems
from bench.harness import Bench
from bench.queue_backlog import load_sqlite
from bench.queue_progress import BATCH, SharedProgress, submit_on_command
from bench.queue_systems import QueueSystem, SystemSpec, quantile

ECHO = """
import sys
from pathlib import Path
from bench.queue_progress import SharedProgress
board = SharedProgress(Path(sys.argv[2]))
print("a greeting", flush=True)
print("ready", flush=True)
for line in sys.stdin:
    how, first, count, *_ = line.split()
    for number in range(int(first), int(first) + int(count)):
        board.committed(number)
        board.started(number)
        board.done(number)
        board.done(number)
    print("ok", flush=True)
"""


def test_marks_of_one_process_are_read_by_another(tmp_path: Path) -> None:
    written, read = SharedProgress(tmp_path / "board"), SharedProgress(tmp_path / "board")
    for number in (3, 4):
        written.committed(number)
        written.started(number)
    written.done(3)
    written.done(-1)
    written.count(2)
    assert (read.done_of(0, 10), read.done_of(3, 1), read.counted) == (1, 1, 2)
    assert len(read.waits_ms(3, 2)) == 2
    assert all(wait >= 0 for wait in read.waits_ms(3, 2))


def test_quantile_is_one_of_the_values() -> None:
    figures = [float(number) for number in range(1, 101)]
    assert (quantile(figures, 0.5), quantile(figures, 0.99), quantile([7.0], 0.99)) == (50.0, 99.0, 7.0)


async def test_jobs_are_submitted_in_batches_or_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted: list[list[int]] = []

    async def submit(numbers: list[int]) -> None:
        submitted.append(numbers)

    monkeypatch.setattr(sys, "stdin", io.StringIO(f"burst 0 {BATCH + 1}\nspaced 500 2 0\n"))
    await submit_on_command(SharedProgress(tmp_path / "board"), submit)
    assert [len(numbers) for numbers in submitted] == [BATCH, 1, 1, 1]
    assert submitted[-1] == [501]
    assert capsys.readouterr().out.split() == ["ready", "ok", "ok"]


def _contender(folder: Path, stack: ExitStack, name: str = "echo", text: str = ECHO) -> QueueSystem:
    (folder / f"{name}_module.py").write_text(text)
    recipe = SystemSpec(name, sys.executable, f"{name}_module", ("all",), ())
    return QueueSystem(recipe, folder, stack)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_system_is_measured_by_its_progress_file(on_path: Path) -> None:
    with ExitStack() as stack:
        contender = _contender(on_path, stack)
        contender.wait_ready()
        assert contender.rate(50) > 0
        assert len(contender.waits_ms(5, 0)) == 5
        assert contender.board.done_of(0, 100) == 55


def test_process_that_ends_early_reports_its_error(on_path: Path) -> None:
    with ExitStack() as stack:
        contender = _contender(on_path, stack, "dying", "raise SystemExit('no such server')")
        with pytest.raises(RuntimeError, match="no such server"):
            contender.wait_ready()


def test_peer_that_cannot_be_installed_has_a_row_with_the_reason(
    on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PEERS", raising=False)
    monkeypatch.setattr(peers, "PEERS", on_path)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", "no such package\n"))
        why = queue_systems.install("arq")
    assert why == "pip install arq failed: no such package"
    monkeypatch.setattr(queue, "JOBS", 10)
    monkeypatch.setattr(queue, "WARM_UP", 10)
    bench = Bench("queue")
    with ExitStack() as stack:
        names = (queue.OURS, queue.RAW, queue.EMBEDDED, queue.RAW_EMBEDDED, "Celery", "procrastinate")
        everybody = {name: _contender(on_path, stack, f"echo_{at}") for at, name in enumerate(names)}
        queue.add_rates(bench, everybody, {"arq": why})
    rows = {row.against.split(":")[0]: row for row in bench.rows if row.against}
    assert rows["not measured"].value is None
    assert rows["procrastinate"].goal == ">= 3"
    assert rows["Celery"].goal == ">= 1"


async def test_a_backlog_is_due_for_delivery(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    await migrations.upgrade(f"sqlite:///{path}")
    await asyncio.to_thread(load_sqlite, path, 20)
    async with open_database(f"sqlite:///{path}", migrate=False) as database:
        assert len(await database.transact(lambda tx: outbox.take_due(tx, limit=12))) == 12
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM jobs WHERE status = 'pending'").fetchone() == (20,)
    connection.close()
