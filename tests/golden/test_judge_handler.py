"""The handler of judge jobs in the real box: what the launcher gets to know about the claim it runs for."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from adjudge.blobs.cache import BlobCache
from adjudge.blobs.driver import BlobStore
from adjudge.domain.states import JobStatus
from adjudge.judge.pipeline import Judge
from adjudge.packages.problem_json import problem_to_json
from adjudge.sandbox import Sandbox, SandboxRunReport, SandboxRunSpec
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.judging.models import JudgeTask
from adjudge.store.problems import commands as problem_commands
from adjudge.worker.handlers import judge as judge_handler
from adjudge.worker.handlers.judge import JudgeHandler
from tests.golden.package_builder import PackageBuilder

pytestmark = pytest.mark.asyncio(loop_scope="session")

ATTEMPT = 3


class Rows:
    """A database that knows one submission."""

    async def read(self, work: Any) -> Any:
        return await work(None)


class Recorded:
    """A sandbox that notes what its launcher was asked and what it reported."""

    def __init__(self, box: Sandbox) -> None:
        self._box = box
        self.seen: list[tuple[SandboxRunSpec, SandboxRunReport]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._box, name)

    async def run(self, spec: SandboxRunSpec) -> SandboxRunReport:
        report = await self._box.run(spec)
        self.seen.append((spec, report))
        return report


def _job(job_id: str) -> Job:
    values: dict[str, Any] = dict.fromkeys(Job._fields)
    values |= {"id": job_id, "kind": "judge", "status": JobStatus.RUNNING, "prior_status": JobStatus.PENDING}
    return Job(**values | {"attempt_id": ATTEMPT, "max_attempts": 5, "submission_id": "s-1", "payload": {}})


async def test_launcher_gets_job_and_attempt_id(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = PackageBuilder(tmp_path)
    definition = json.dumps(problem_to_json(folder.problem(("1\n", "1\n"), ("2\n", "2\n"))))

    async def task_of(*_: object) -> JudgeTask:
        return JudgeTask("s-1", "bash", "", "text", "r-1", "digest", definition, "read x; echo $x\n")

    async def judging_files(*_: object) -> dict[str, str]:
        return {path.name: str(path) for path in tmp_path.iterdir()}

    @asynccontextmanager
    async def pin(digest: str) -> Any:
        yield Path(digest)

    monkeypatch.setattr(judge_handler, "find_judge_task", task_of)
    monkeypatch.setattr(problem_commands, "list_judging_files", judging_files)
    cache = type("Cache", (), {"pin": staticmethod(pin)})
    box = Recorded(judge.sandbox)
    handler = JudgeHandler(
        cast("Database", Rows()),
        cast("BlobStore", None),
        cast("BlobCache", cache),
        replace(judge, sandbox=cast("Sandbox", box)),
        margin=0.1,
    )
    done = await handler.run(_job("job-of-the-claim"))
    assert done.status is JobStatus.SUCCEEDED
    runs = [(spec, report) for spec, report in box.seen if spec.job_id]
    assert len(runs) == 2
    for spec, report in runs:
        assert (spec.job_id, spec.attempt_id) == ("job-of-the-claim", ATTEMPT)
        assert (report.job_id, report.attempt_id) == ("job-of-the-claim", ATTEMPT)
