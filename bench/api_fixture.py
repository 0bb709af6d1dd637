"""What the API's benchmark is set in: a database with people and a published problem, and the processes around it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from adjudge.domain.ids import new_id
from adjudge.domain.problem import Case, PackageFormat, Problem, ProblemLimits
from adjudge.packages.problem_json import problem_to_json
from adjudge.store import Tx, open_database
from adjudge.store.accounts import api_tokens, users
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from bench.api_load_generator import MARK, request
from bench.queue_systems import quantile

ROOT = Path(__file__).resolve().parents[1]
LIMIT_SEC = 60.0
"""No load lasts longer, whatever happens."""
SLUG = "sum"
SOURCE = (
    f"// {MARK.decode()}\n#include <cstdio>\n\nint main() {{\n    long long sum = 0, next;\n"
    '    while (std::scanf("%lld", &next) == 1) {\n        sum += next;\n    }\n'
    '    std::printf("%lld\\n", sum);\n    return 0;\n}\n'
)
SETTINGS = {
    "ADMISSION_HEALTH_GATE": "false",
    "ADMISSION_HIGH_WATERMARK": "0",
    "ADMISSION_LOW_WATERMARK": "0",
    "ADMISSION_USER_PER_SEC": "1000000",
    "ADMISSION_USER_BURST": "1000000",
    "ADMISSION_ADDRESS_PER_SEC": "1000000",
    "ADMISSION_ADDRESS_BURST": "1000000",
    "ADMISSION_IN_FLIGHT": "1000000",
    "ADMISSION_DAILY_QUOTA": "1000000",
    "LOG_FORMAT": "json",
}
"""No worker judges here, so nobody may be turned away: rates, quotas and caps are high and still asked for, the
watermark and the health gate are off."""


@dataclass(frozen=True, slots=True)
class ApiFixture:
    """A database that is ready."""

    url: str
    problem_id: str
    revision_id: str
    user_ids: tuple[str, ...]
    tokens: tuple[str, ...]
    staff_token: str

    def submits(self, connections: int) -> list[str]:
        """One request for each connection, each of a user of its own."""
        body = _json(_submission())
        return [_text(request("POST", "/api/v1/submissions", token, body)) for token in self.tokens[:connections]]

    def batches(self, connections: int, size: int) -> list[str]:
        """The same for many at once."""
        body = _json({"items": [_submission()] * size})
        return [_text(request("POST", "/api/v1/submissions:batch", token, body)) for token in self.tokens[:connections]]

    def streams(self, users: int, staff: int) -> list[str]:
        """Event streams of as many users, and of staff who hear everything."""
        own = [_text(request("GET", "/api/v1/me/events", token)) for token in self.tokens[:users]]
        return own + [_text(request("GET", "/api/v1/events", self.staff_token))] * staff

    @property
    def example(self) -> dict[str, Any]:
        """What the bare driver writes."""
        return {
            "source": SOURCE,
            "user_ids": self.user_ids,
            "problem_id": self.problem_id,
            "revision_id": self.revision_id,
        }


def _submission() -> dict[str, str]:
    return {"problem": SLUG, "language": "cpp17", "source": SOURCE}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _text(data: bytes) -> str:
    return data.decode("latin-1")


async def seed_database(url: str, people: int) -> ApiFixture:
    """Migrate a database and put people and a problem into it."""
    user_ids = tuple(new_id() for _ in range(people))
    secrets = tuple(api_tokens.new_secret() for _ in range(people))
    staff_id, staff_token, problem_id, revision_id = new_id(), api_tokens.new_secret(), new_id(), new_id()
    limits = ProblemLimits(code_bytes=100_000)
    definition = problem_to_json(Problem(SLUG, PackageFormat("plain"), limits=limits, cases=(Case("1", "", "1.in"),)))

    async def move_in(tx: Tx) -> None:
        for number, (user_id, secret) in enumerate(zip(user_ids, secrets, strict=True)):
            await users.insert(tx, users.NewUser(user_id, f"user-{number}"))
            await api_tokens.insert(tx, api_tokens.NewApiToken(new_id(), user_id, "bench", secret))
        await users.insert(tx, users.NewUser(staff_id, "staff", role="judge"))
        await api_tokens.insert(tx, api_tokens.NewApiToken(new_id(), staff_id, "bench", staff_token))
        await problem_commands.insert(tx, problem_models.NewProblem(problem_id, SLUG, "Sum", staff_id))
        revision = problem_models.NewRevision(revision_id, problem_id, "plain", "0" * 64, staff_id, definition)
        await problem_commands.add_revision(tx, revision)
        await problem_commands.publish(tx, problem_id=problem_id, revision_id=revision_id, version=1)

    async with open_database(url) as database:
        await database.transact(move_in)
    return ApiFixture(url, problem_id, revision_id, user_ids, secrets, staff_token)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load came to."""

    per_sec: float
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, answer: dict[str, Any], each: int = 1) -> LoadResult:
        """From what a process said."""
        waits = sorted(answer["waits_ms"])
        return cls(len(waits) * each / answer["seconds"], quantile(waits, 0.50), quantile(waits, 0.99))


def median_result(rounds: list[LoadResult]) -> LoadResult:
    """The median of each figure."""
    figures = zip(*((ran.per_sec, ran.p50_ms, ran.p99_ms) for ran in rounds), strict=True)
    return LoadResult(*(median(each) for each in figures))


class BenchProcess:
    """A process of this benchmark, ended with it."""

    def __init__(self, name: str, argv: list[str], folder: Path, stack: ExitStack, **environment: str) -> None:
        self.name = name
        self._errors = folder / f"{name}.log"
        errors = stack.enter_context(self._errors.open("a"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", *argv],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        stack.callback(self._end)

    @property
    def memory_mb(self) -> float:
        """The resident memory of the process."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1_024

    def expect(self, word: str) -> str:
        """Wait for a line with a word in it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if word in line:
                return line.strip()
        raise RuntimeError(f"{self.name} ended instead of saying {word!r}: {self._errors.read_text()[-2_000:]}")

    def port(self) -> int:
        """Where a server listens, from what it says when it is up."""
        return int(self.expect(" at http://").rpartition(":")[2])

    def tell(self, document: dict[str, Any]) -> None:
        """Say a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()

    def ask(self, **command: Any) -> dict[str, Any]:
        """Say a line, hear a line."""
        self.tell(command)
        answer: dict[str, Any] = json.loads(self.expect("{"))
        return answer

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()


def api_process(name: str, api_fixture: ApiFixture, folder: Path, stack: ExitStack) -> BenchProcess:
    """One server, as the command starts it."""
    settings = SETTINGS | {"DATABASE_URL": api_fixture.url, "DATA_DIR": str(folder / f"{name}-data")}
    environment = {f"ADJUDGE_{variable}": value for variable, value in settings.items()}
    return BenchProcess(name, ["adjudge", "api", "--port", "0"], folder, stack, **environment)


class UnexpectedResponse(Exception):
    """A server that did not do what it was asked."""


def load(generator: BenchProcess, port: int, requests: list[str], count: int, each: int = 1) -> LoadResult:
    """Have requests sent; every one of them must succeed."""
    answer = generator.ask(do="load", port=port, requests=requests, count=count, limit_sec=LIMIT_SEC)
    wrong = {status: times for status, times in answer["statuses"].items() if not status.startswith("2")}
    if wrong or sum(answer["statuses"].values()) < count:
        raise UnexpectedResponse(
            f"{sum(answer['statuses'].values())} of {count} answered, wrong {wrong}: {answer['wrong']}"
        )
    return LoadResult.of(answer, each)
