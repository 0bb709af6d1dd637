"""A backup of a judge that is submitted to all the time, restored elsewhere: nothing acknowledged before is missing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.installation import (
    PASSWORD,
    AdjudgeProcess,
    Installation,
    command_environment,
    environment_of,
    start_embedded,
)
from tests.support.problem_packages import icpc_package, zip_files

pytestmark = pytest.mark.slow
SOURCE = "print(sum(map(int, input().split())))  # {}\n"
_READY = "Adjudge is running at "


class Submitter(threading.Thread):
    """Submits without a pause until it is stopped; records what the server has acknowledged."""

    def __init__(self, installation: Installation, name: str) -> None:
        super().__init__(daemon=True)
        self._installation, self._label = installation, name
        self.acknowledged: list[str] = []
        self.stopping = threading.Event()
        self.some = threading.Event()

    def run(self) -> None:
        with self._installation.client("admin") as client:
            number = 0
            while not self.stopping.is_set():
                number += 1
                padding = "#" * (70_000 if number % 5 == 0 else 0)  # too large for a row: a blob
                body = {"problem": "sum", "language": "python3", "source": SOURCE.format(f"{self._label} {number}")}
                answer = client.post("/api/v1/submissions", json=body | {"source": body["source"] + padding})
                assert answer.status_code == 202, answer.text
                self.acknowledged.append(answer.json()["submission_id"])
                if number >= 10:
                    self.some.set()


def adjudge(folder: Path, *argv: object) -> str:
    """Run a command in the data directory of an installation; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "adjudge", *map(str, argv)],
        env=command_environment(environment_of(folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def restarted(folder: Path) -> Iterator[Installation]:
    """``adjudge up`` on a restored folder; short leases, because its jobs belong to a worker that is gone."""
    settings = {"job_lease_sec": 4, "job_heartbeat_sec": 1, "job_reclaim_interval_sec": 1}
    server = AdjudgeProcess(["up"], environment_of(folder, **settings), folder)
    try:
        url = server.wait_for(_READY)
        with httpx.Client(base_url=url, timeout=120) as admin:
            answer = admin.post(
                "/api/v1/login:token", json={"name": "admin", "password": PASSWORD, "token_name": "new"}
            )
            assert answer.status_code == 201, answer.text
            admin.headers["Authorization"] = f"Bearer {answer.json()['secret']}"
            yield Installation(url, folder, admin, [server])
    finally:
        server.stop()


def test_backup_during_submissions_is_complete_and_judging_goes_on(tmp_path: Path) -> None:
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "backup.tar"
    old.mkdir()
    new.mkdir()
    with start_embedded(old) as installation:
        installation.publish(zip_files(icpc_package("Sum")), slug="sum")
        threads = [Submitter(installation, name) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            assert thread.some.wait(120)
        before = [submission for thread in threads for submission in list(thread.acknowledged)]
        adjudge(old, "backup", file)
        for thread in threads:
            thread.stopping.set()
            thread.join()
    assert "is intact" in adjudge(new, "verify-backup", file)
    adjudge(new, "restore", file)
    with restarted(new) as restored:
        for submission in before:
            found = restored.wait_until(f"/api/v1/submissions/{submission}", lambda it: it["finished_at"] is not None)
            assert found["verdict"] == "AC", found
            source = restored.admin.get(f"/api/v1/submissions/{submission}/source")
            assert source.status_code == 200
