"""A published problem with users for tests of the API; judgements are written without a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from adjudge.domain.ids import new_id
from adjudge.domain.problem import Case, PackageFormat, Problem, ProblemLimits
from adjudge.domain.verdict import Verdict
from adjudge.packages.problem_json import problem_to_json
from adjudge.store import Tx
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.models import CaseResultRow, Judgement
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from tests.support.asgi_app import AsgiApp
from tests.support.store_harness import fence_of

OPEN_GATE: dict[str, object] = {"admission.health_gate": False, "admission.user_burst": 10_000}
"""Admission control is off; it has its own tests."""
SOURCE = "int main() {}\n"


@dataclass
class PublishedProblem:
    """One published problem, its setter, and users who submit to it."""

    api: AsgiApp
    setter_id: str
    setter_token: str
    problem_id: str
    revision_id: str
    slug: str = "sum"

    @asynccontextmanager
    async def user_client(self, role: str = "contestant") -> AsyncIterator[httpx.AsyncClient]:
        """A client of a new user."""
        async with self.api.as_role(role) as client:
            yield client

    def submission_body(self, **fields: Any) -> dict[str, Any]:
        """A valid request body for a submission."""
        return {"problem": self.slug, "language": "cpp", "source": SOURCE} | fields

    async def submit(self, client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
        """Hand one in; its answer."""
        answer = await client.post("/api/v1/submissions", json=self.submission_body(**fields))
        assert answer.status_code == 202, answer.text
        accepted: dict[str, Any] = answer.json()
        return accepted

    async def claim(self, job_id: str) -> JobResult:
        """Claim a judge run; return the result that finishes it."""
        (job,) = (await self.api.store.claim(job_id)).done
        return JobResult(fence_of(job))

    async def finish(
        self,
        job_id: str,
        verdict: Verdict = Verdict.AC,
        *,
        score: float = 1.0,
        time_ms: int = 7,
        mem_kb: int = 1_024,
    ) -> None:
        """Finish a judge run with a verdict, as a worker does."""
        started = await self.claim(job_id)
        case = CaseResultRow("1", verdict, time_ms, time_ms, mem_kb)
        outcome = Judgement(verdict, score=score, time_ms=time_ms, mem_kb=mem_kb, cases=(case,))
        finish = JobResult(started.fence, result=result_document(verdict, mem_kb), typed_result=outcome)
        await self.api.store.transact(lambda tx: self.api.store.jobs.finish_and_claim_next(tx, [finish]))


def result_document(verdict: Verdict, mem_kb: int = 1_024) -> Mapping[str, Any]:
    """A result document of the judge, reduced to the fields that tests read."""
    case = {
        "group": "data/secret",
        "verdict": verdict.value,
        "time_ms": 7,
        "wall_ms": 7,
        "mem_kb": mem_kb,
        "message": "the secret answer is 42",
        "author_message": "",
        "exit_code": 0,
        "exit_signal": None,
        "first_run": None,
        "score": None,
        "score_unit": None,
    }
    return {
        "schema_version": 1,
        "verdict": verdict.value,
        "score": 1,
        "max_score": 1,
        "time_ms": 7,
        "mem_kb": mem_kb,
        "wall_ms": 9,
        "message": "the secret answer is 42",
        "first_failure": None,
        "compile": {"ok": True, "message": "", "log": "", "limit": None, "time_ms": 1, "cached": False},
        "groups": [],
        "cases": [
            case | {"name": "sample", "is_sample": True, "feedback": "full", "message": "a sample's message"},
            case | {"name": "secret", "is_sample": False, "feedback": "complete"},
        ],
        "provenance": {
            "adjudge": "0",
            "source_sha256": "",
            "language": "cpp17",
            "language_version": "",
            "problem": "sum",
            "limits": {},
            "worker": "w1",
        },
    }


def minimal_problem(**fields: Any) -> Problem:
    """A problem with one test."""
    limits = ProblemLimits(code_bytes=100_000)
    return Problem("sum", PackageFormat("plain"), limits=limits, cases=(Case("1", "", "1.in"),), **fields)


async def publish_problem(api: AsgiApp, problem: Problem | None = None) -> PublishedProblem:
    """Publish a problem."""
    setter_id, token = await api.user("setter")
    problem_id, revision_id = new_id(), new_id()
    definition = problem_to_json(problem or minimal_problem())

    async def publish(tx: Tx) -> None:
        await problem_commands.insert(tx, problem_models.NewProblem(problem_id, "sum", "Sum", setter_id))
        revision = problem_models.NewRevision(revision_id, problem_id, "plain", "0" * 64, setter_id, definition)
        await problem_commands.add_revision(tx, revision)
        await problem_commands.publish(tx, problem_id=problem_id, revision_id=revision_id, version=1)

    await api.store.transact(publish)
    return PublishedProblem(api, setter_id, token, problem_id, revision_id)


async def add_revision(published_problem: PublishedProblem) -> str:
    """Publish another revision; return its id."""
    revision_id = new_id()

    async def publish(tx: Tx) -> None:
        revision = problem_models.NewRevision(
            revision_id,
            published_problem.problem_id,
            "plain",
            "1" * 64,
            published_problem.setter_id,
            problem_to_json(minimal_problem()),
        )
        await problem_commands.add_revision(tx, revision)
        await problem_commands.publish(tx, problem_id=published_problem.problem_id, revision_id=revision_id, version=2)

    await published_problem.api.store.transact(publish)
    return revision_id


async def add_problem(
    published_problem: PublishedProblem, slug: str, *, is_published: bool = True, **fields: Any
) -> tuple[str, str]:
    """Add another problem of the same setter; return its id and that of its revision."""
    problem_id, revision_id, setter_id = new_id(), new_id(), published_problem.setter_id
    definition = problem_to_json(minimal_problem(**fields))

    async def insert(tx: Tx) -> None:
        await problem_commands.insert(tx, problem_models.NewProblem(problem_id, slug, slug.title(), setter_id))
        revision = problem_models.NewRevision(revision_id, problem_id, "plain", "2" * 64, setter_id, definition)
        await problem_commands.add_revision(tx, revision)
        if is_published:
            await problem_commands.publish(tx, problem_id=problem_id, revision_id=revision_id, version=1)

    await published_problem.api.store.transact(insert)
    return problem_id, revision_id
