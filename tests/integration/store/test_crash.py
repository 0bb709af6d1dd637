"""SQLite's file survives ``kill -9`` at any time: what was reported committed is there, and nothing is half there."""

from __future__ import annotations

import multiprocessing
import random
import signal
import sqlite3
from pathlib import Path

from adjudge.store.engine.connect import sqlite_path
from tests.integration.store import commit_loop

ROUNDS = 6
_CHILDREN = multiprocessing.get_context("forkserver")


def commit_until_killed(path: Path, reports: int) -> set[tuple[str, str]]:
    """Let a child commit, kill it after some reports, and return all it had managed to say."""
    here, there = _CHILDREN.Pipe(duplex=False)
    child = _CHILDREN.Process(target=commit_loop.main, args=(path, there))
    child.start()
    there.close()
    said: set[tuple[str, str]] = set()
    try:
        for _ in range(reports):
            said.update(here.recv())
        child.kill()
        while True:
            said.update(here.recv())
    except (EOFError, OSError):  # killed between two reports, or in the middle of one
        child.join()
    here.close()
    assert child.exitcode == -signal.SIGKILL
    return said


def test_what_was_committed_outlives_a_kill(sqlite_url: str) -> None:
    path = sqlite_path(sqlite_url)
    assert path is not None
    _CHILDREN.set_forkserver_preload([commit_loop.__name__])
    timestamps = random.Random(7)
    reported: set[tuple[str, str]] = set()
    for _ in range(ROUNDS):
        reported |= commit_until_killed(path, reports=timestamps.randint(1, 60))
        check(path, reported)
    assert len(reported) > ROUNDS


def check(path: Path, reported: set[tuple[str, str]]) -> None:
    database = sqlite3.connect(path)
    try:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        status = dict(database.execute("SELECT id, status FROM jobs").fetchall())
        assert {job_id for word, job_id in reported if word == "created"} <= status.keys()
        assert all(status[job_id] == "succeeded" for word, job_id in reported if word == "finished")
        without_message = "SELECT count(*) FROM jobs WHERE id NOT IN (SELECT job_id FROM outbox)"
        assert database.execute(without_message).fetchone() == (0,)
        last_logged = (
            "SELECT jobs.id FROM jobs LEFT JOIN job_status_log ON job_id = jobs.id GROUP BY jobs.id, status "
            "HAVING status <> COALESCE((SELECT to_status FROM job_status_log l WHERE l.job_id = jobs.id "
            "ORDER BY l.id DESC LIMIT 1), 'pending')"
        )
        assert database.execute(last_logged).fetchall() == []
        assert len(status) % 3 == 0, "each transaction made three jobs or none"
    finally:
        database.close()
