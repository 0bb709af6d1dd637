"""A complete installation in real processes, and a client that creates its data.

Used by the browser tests, the screenshots and the benchmark of pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx

from adjudge.api.cookies import SESSION_COOKIE

PASSWORD: Final = "correct horse battery"
_READY: Final = "Adjudge is running at "
_ONE_TIME: Final = "with the one-time password "
_TIMEOUT_SEC: Final = 180
_NUMBERS: Final = count(1)


class AdjudgeProcess:
    """One ``adjudge`` process; its output is recorded for failure messages."""

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, python: str = sys.executable
    ) -> None:
        self.output: list[str] = []
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [python, "-m", "adjudge", *arguments],
            cwd=folder,
            env={**_bare_environment(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.output.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self.output.append("")
            self._changed.notify_all()

    def wait_for(self, text: str) -> str:
        """Wait for a line that contains ``text``; return the rest of the line after it."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._has(text) or self._process.poll() is not None, _TIMEOUT_SEC):
                raise AssertionError(f"{text!r} was not printed:\n" + "\n".join(self.output))
            line = next((line for line in self.output if text in line), None)
            assert line is not None, "the process exited:\n" + "\n".join(self.output)
            return line.partition(text)[2]

    def _has(self, text: str) -> bool:
        return any(text in line for line in self.output)

    def kill(self) -> None:
        """End it without warning, as a crash of the machine does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Terminate the process; kill it if it does not exit."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()


def command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command of an installation."""
    return {**_bare_environment(), **environment}


def _bare_environment() -> dict[str, str]:
    """This process's environment without Adjudge settings; an unprivileged user may have no cgroup."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ADJUDGE_", "REDIS_", "JOB_"))}
    return kept | {"ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP": "true"}


@dataclass
class Installation:
    """A running installation."""

    url: str
    folder: Path
    admin: httpx.Client
    """The first admin, with a token."""
    processes: list[AdjudgeProcess] = field(default_factory=list)
    environment: Mapping[str, str] = field(default_factory=dict)
    _sessions: dict[str, str] = field(default_factory=dict)

    @property
    def blobs(self) -> Path:
        """The folder of its blob store."""
        return self.folder / "blobs"

    def user(self, name: str, role: str = "contestant", **fields: Any) -> None:
        """Create a user who logs in with ``PASSWORD``."""
        with httpx.Client(base_url=self.url, timeout=_TIMEOUT_SEC) as client:
            _choose_password(client, name, self.user_with_one_time_password(name, role, **fields))

    def user_with_one_time_password(self, name: str, role: str = "contestant", **fields: Any) -> str:
        """Create a user; return the one-time password."""
        answer = self.admin.post("/api/v1/users", json={"name": name, "role": role, **fields})
        assert answer.status_code == 201, answer.text
        one_time: str = answer.json()["one_time_password"]
        return one_time

    def session(self, name: str) -> str:
        """The session cookie of a user; logs in once, without the form."""
        if name not in self._sessions:
            with httpx.Client(base_url=self.url, timeout=_TIMEOUT_SEC) as visitor:
                answer = visitor.post("/api/v1/login", json={"name": name, "password": PASSWORD})
                assert answer.status_code == 200, answer.text
                self._sessions[name] = visitor.cookies[SESSION_COOKIE]
        return self._sessions[name]

    @contextmanager
    def client(self, name: str) -> Iterator[httpx.Client]:
        """A client of a user with a new token."""
        with httpx.Client(base_url=self.url, timeout=_TIMEOUT_SEC) as client:
            order = {"name": name, "password": PASSWORD, "token_name": "tests"}
            answer = client.post("/api/v1/login:token", json=order)
            assert answer.status_code == 201, answer.text
            client.headers["Authorization"] = f"Bearer {answer.json()['secret']}"
            yield client

    def publish(self, data: bytes, *, by: httpx.Client | None = None, **query: Any) -> dict[str, Any]:
        """Upload a package, wait until the worker has taken it in, and publish it; the import as it ended."""
        client = by or self.admin
        answer = client.post("/api/v1/problems:import", content=data, params=query)
        assert answer.status_code == 202, answer.text
        found = self.wait_until(answer.json()["url"], lambda it: it["finished_at"] is not None)
        assert found["state"] == "succeeded", found
        version = client.get(f"/api/v1/problems/{found['slug']}/state").json()["version"]
        # Not published with the import, because some packages fail the verification.
        body = {"version": version, "revision": found["revision"]}
        published = client.post(f"/api/v1/problems/{found['slug']}:publish", json=body)
        assert published.status_code == 200, published.text
        return found

    def publish_manually(self, data: bytes, slug: str) -> None:
        """Publish a package whether or not its jury solutions meet their expectations."""
        found = self.publish(data, slug=slug, publish=False)
        version = self.admin.get(f"/api/v1/problems/{slug}").json()["version"]
        order = {"version": version, "revision": found["revision"], "reason": "published by a test"}
        answer = self.admin.post(f"/api/v1/problems/{slug}:publish", json=order)
        assert answer.status_code == 200, answer.text

    def submit_and_wait(self, client: httpx.Client, problem: str, source: str, language: str = "python3") -> str:
        """Submit and wait for the verdict; return the submission's id."""
        body = {"problem": problem, "language": language, "source": source}
        answer = client.post("/api/v1/submissions", json=body)
        assert answer.status_code == 202, answer.text
        submission_id: str = answer.json()["submission_id"]
        self.wait_until(f"/api/v1/submissions/{submission_id}", lambda it: it["finished_at"] is not None)
        return submission_id

    def wait_until(self, path: str, holds: Any) -> dict[str, Any]:
        """Poll a path as the admin until ``holds`` is true for the response; return the response."""
        ends = time.monotonic() + _TIMEOUT_SEC
        while True:
            answer = self.admin.get(path)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if holds(found):
                return found
            assert time.monotonic() < ends, f"{path} stays {found}"
            time.sleep(0.05)


def environment_of(folder: Path, **settings: object) -> dict[str, str]:
    """The environment of an installation; names of ``settings`` lack the prefix ``ADJUDGE_``."""
    return {
        "ADJUDGE_DATA_DIR": str(folder),
        "ADJUDGE_PORT": "0",
        "ADJUDGE_WORKER_CACHE_DIR": str(folder / "cache"),
        "ADJUDGE_JUDGE_CACHE_DIR": str(folder / "compiled"),
        "ADJUDGE_WORKER_SLOTS": "1",
        "ADJUDGE_LOGIN_PER_MIN": "1000",
        "ADJUDGE_ADMISSION_USER_PER_SEC": "0",
        "ADJUDGE_RETRY_BASE_MS": "1",
        "ADJUDGE_RETRY_MAX_RETRIES": "1",
        "ADJUDGE_LOG_LEVEL": "warning",
        **{f"ADJUDGE_{name.upper()}": str(value) for name, value in settings.items()},
    }


@contextmanager
def start_embedded(folder: Path, **settings: object) -> Iterator[Installation]:
    """``adjudge up``: one process on SQLite. The one-time password of the first admin is read from its output."""
    with ExitStack() as stack:
        server = AdjudgeProcess(["up"], environment_of(folder, **settings), folder)
        stack.callback(server.stop)
        one_time = server.wait_for(_ONE_TIME).partition(" ")[0]
        url = server.wait_for(_READY)
        admin = stack.enter_context(httpx.Client(base_url=url, timeout=_TIMEOUT_SEC))
        _choose_password(admin, "admin", one_time)
        _create_token(admin, PASSWORD)
        yield Installation(url, folder, admin, [server])


def _own_name(name: str) -> str:
    """A Redis namespace for each installation: one that belongs to another database is refused."""
    return f"{name}-{os.getpid()}-{next(_NUMBERS)}"


@contextmanager
def start_distributed(folder: Path, database_url: str, redis_url: str, **settings: object) -> Iterator[Installation]:
    """A process each for ``api``, ``scheduler`` and ``worker``, on PostgreSQL and Redis."""
    environment = environment_of(
        folder, database_url=database_url, redis_url=redis_url, environment=_own_name("browser"), **settings
    )
    with ExitStack() as stack:
        add_user(environment, folder, "admin", "admin")
        processes = [AdjudgeProcess([role], environment, folder) for role in ("api", "scheduler", "worker")]
        for process in processes:
            stack.callback(process.stop)
        url = processes[0].wait_for(_READY)
        admin = stack.enter_context(httpx.Client(base_url=url, timeout=_TIMEOUT_SEC))
        _create_token(admin, PASSWORD)
        yield Installation(url, folder, admin, processes, environment)


def add_user(environment: Mapping[str, str], folder: Path, name: str, role: str) -> None:
    """``adjudge user add``, with ``PASSWORD``."""
    argv = [sys.executable, "-m", "adjudge", "user", "add", name, "--role", role, "--password-stdin"]
    subprocess.run(
        argv,
        env={**_bare_environment(), **environment},
        cwd=folder,
        input=PASSWORD + "\n",
        text=True,
        check=True,
        capture_output=True,
    )


def _choose_password(client: httpx.Client, name: str, one_time: str) -> None:
    answer = client.post("/api/v1/login", json={"name": name, "password": one_time})
    assert answer.status_code == 200, answer.text
    change = {"current": one_time, "new": PASSWORD}
    headers = {"X-CSRF-Token": answer.json()["csrf_token"]}
    answer = client.post("/api/v1/me:password", json=change, headers=headers)
    assert answer.status_code == 204, answer.text
    client.cookies.clear()


def _create_token(client: httpx.Client, password: str) -> None:
    order = {"name": "admin", "password": password, "token_name": "tests"}
    answer = client.post("/api/v1/login:token", json=order)
    assert answer.status_code == 201, answer.text
    client.headers["Authorization"] = f"Bearer {answer.json()['secret']}"
