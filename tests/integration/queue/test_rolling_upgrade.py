"""A rolling upgrade: every process of the previous version is replaced, one after the other, during submissions.

The previous version is a wheel of the newest release; before the first release, of the last commit.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests.support.databases import PostgresDatabases, run_in_thread
from tests.support.installation import PASSWORD, AdjudgeProcess, Installation, add_user, environment_of
from tests.support.problem_packages import icpc_package, zip_files
from tests.support.releases import install_previous
from tests.support.servers import RedisServer

pytestmark = pytest.mark.slow
_READY = "Adjudge is running at "
_STARTED = {"api": _READY, "scheduler": "started", "worker": "started"}
SOURCE = "print(sum(map(int, input().split())))  # {}\n"


class Submitter(threading.Thread):
    """Submits to any API server that answers, with a key for each submission, until each is acknowledged."""

    def __init__(self, urls: list[str], token: str) -> None:
        super().__init__(daemon=True)
        self._urls, self._token = urls, token
        self.acknowledged: dict[str, str] = {}
        self.stopping = threading.Event()

    def run(self) -> None:
        for number in count(1):
            if self.stopping.is_set():
                return
            self._submit(f"key-{number}", number)
            time.sleep(0.05)

    def _submit(self, key: str, number: int) -> None:
        headers = {"Authorization": f"Bearer {self._token}", "Idempotency-Key": key}
        body = {"problem": "sum", "language": "python3", "source": SOURCE.format(number)}
        while True:
            for url in list(self._urls):
                try:
                    answer = httpx.post(f"{url}/api/v1/submissions", json=body, headers=headers, timeout=120)
                except httpx.TransportError:
                    continue
                assert answer.status_code in {200, 202, 503}, answer.text
                if answer.status_code != 503:
                    self.acknowledged[key] = answer.json()["submission_id"]
                    return

    def wait_for_more(self, how_many: int) -> None:
        """Wait for further acknowledgements."""
        wanted, ends = len(self.acknowledged) + how_many, time.monotonic() + 180
        while len(self.acknowledged) < wanted:
            assert self.is_alive()
            assert time.monotonic() < ends
            time.sleep(0.02)


class Fleet:
    """Two processes of each role; ``urls`` are those of the API servers."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment, self._folder = environment, folder
        self.running: list[tuple[str, AdjudgeProcess, str]] = []
        self.urls: list[str] = []

    def start(self, role: str, **environment: str) -> None:
        process = AdjudgeProcess([role], {**self._environment, **environment}, self._folder)
        self.running.append((role, process, ""))
        rest = process.wait_for(_STARTED[role])
        if role == "api":
            self.running[-1] = (role, process, rest)
            self.urls.append(rest)

    def replace_oldest(self) -> str:
        """Start a process of the present version, then stop the oldest one of the same role."""
        role, process, url = self.running[0]
        self.start(role)
        if url:
            self.urls.remove(url)
        process.stop()
        del self.running[0]
        return role

    def stop(self) -> None:
        for _, process, _ in self.running:
            process.stop()


def fetch(url: str, sql: str) -> list[asyncpg.Record]:
    async def ask() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetch(sql)
        finally:
            await connection.close()

    return run_in_thread(ask())


def test_rolling_upgrade_loses_and_repeats_no_verdict(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_databases: PostgresDatabases,
    redis_server: RedisServer,
) -> None:
    previous = {"PYTHONPATH": str(install_previous(tmp_path_factory.mktemp("previous")))}
    with postgres_databases.fresh(empty=True) as database:
        environment = environment_of(
            tmp_path, database_url=database, redis_url=redis_server.url, environment=f"rolling-{os.getpid()}"
        )
        add_user({**environment, **previous}, tmp_path, "admin", "admin")
        fleet = Fleet(environment, tmp_path)
        try:
            for role in ("scheduler", "worker", "api"):
                for _ in range(2):
                    fleet.start(role, **previous)
            with httpx.Client(base_url=fleet.urls[0], timeout=120) as admin:
                login = {"name": "admin", "password": PASSWORD, "token_name": "tests"}
                token = admin.post("/api/v1/login:token", json=login).json()["secret"]
                admin.headers["Authorization"] = f"Bearer {token}"
                Installation(fleet.urls[0], tmp_path, admin).publish(zip_files(icpc_package("Sum")), slug="sum")
            submitter = Submitter(fleet.urls, token)
            submitter.start()
            submitter.wait_for_more(3)
            replaced = []
            for _ in range(len(fleet.running)):
                replaced.append(fleet.replace_oldest())
                submitter.wait_for_more(3)
            submitter.stopping.set()
            submitter.join()
            assert sorted(replaced) == ["api"] * 2 + ["scheduler"] * 2 + ["worker"] * 2
            _check(database, submitter.acknowledged)
        finally:
            fleet.stop()


def _check(database: str, acknowledged: Mapping[str, str]) -> None:
    """Each submission exists once, is judged, and got its verdict once."""
    ends = time.monotonic() + 180
    while fetch(database, "SELECT 1 FROM submissions WHERE finished_at IS NULL LIMIT 1"):
        assert time.monotonic() < ends
        time.sleep(0.1)
    judged = {row["id"]: row["verdict"] for row in fetch(database, "SELECT id, verdict FROM submissions")}
    assert set(judged) == set(acknowledged.values()), "none is lost, and none was created twice"
    assert set(judged.values()) == {"AC"}
    verdicts = fetch(
        database,
        "SELECT submission_id, count(*) AS n FROM submission_status_log WHERE to_status = 'accepted' "
        "GROUP BY submission_id",
    )
    assert {row["submission_id"]: row["n"] for row in verdicts} == dict.fromkeys(judged, 1)
    assert fetch(database, "SELECT 1 FROM dead_letters") == []
