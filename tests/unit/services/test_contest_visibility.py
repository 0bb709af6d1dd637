"""Who sees what of a contest's submissions: every route as every viewer in every phase, before and after a change."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.cache.policies import CacheEntity
from adjudge.contests import lifecycle
from adjudge.domain.contest import ContestFeedback, ContestRole
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Role, effective_permissions
from adjudge.domain.verdict import Verdict
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.store import Tx
from adjudge.store.contests import commands, participants
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.models import ContestProblem, ContestSettings, NewParticipant
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.judging.models import NewSubmission
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, SOURCE, PublishedProblem, publish_problem
from tests.support.store_harness import NOON_US, StoreHarness

HOUR_US = 3_600_000_000
HOUR_MS = 3_600_000
SLUG = "finals"
VIEWERS = ("visitor", "author", "teammate", "other", "balloon", "jury", "setter", "stranger")
HIDDEN = ("visitor", "other", "balloon", "setter", "stranger")
"""Those from whom a submission of the author is hidden until the contest shows details of all."""
PHASES_MS = {"before": 0, "running": HOUR_MS, "frozen": 5 * HOUR_MS, "ended": 6 * HOUR_MS}
"""Hours since an hour before the start: five hours long, frozen after four."""


@dataclass
class VisibilityFixture:
    """A contest with two teams, staff and people who are not in it."""

    published: PublishedProblem
    contest_id: str
    clients: dict[str, httpx.AsyncClient]
    users: dict[str, str]
    teams: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> StoreHarness:
        return self.published.api.store

    async def submit(self, who: str) -> tuple[str, str]:
        """Submit for the team of a user; return the submission and its judge run."""
        submission = NewSubmission(
            new_id(),
            self.users[who],
            self.published.problem_id,
            self.published.revision_id,
            "cpp20",
            source_digest=hashlib.sha256(SOURCE.encode()).hexdigest(),
            source_bytes=len(SOURCE),
            source_text=SOURCE,
            contest_id=self.contest_id,
            participant_id=self.teams[who],
        )
        (made,) = await self.store.transact(lambda tx: self.store.submissions.submit(tx, [submission]))
        return made.submission_id, made.job_id

    async def look(self, paths: Sequence[str]) -> dict[tuple[str, str], tuple[int, str | None, bytes]]:
        """Request every path as everybody: status, ETag and body."""
        found = {}
        for who, client in self.clients.items():
            for path in paths:
                answer = await client.get(path)
                found[who, path] = (answer.status_code, answer.headers.get("ETag"), _without_request_id(answer))
        return found

    def viewer(self, who: str) -> Viewer:
        return Viewer(
            self.users[who],
            who,
            Role.CONTESTANT,
            effective_permissions(Role.CONTESTANT, frozenset({"*"})),
            AuthMethod.TOKEN,
        )


def _without_request_id(answer: httpx.Response) -> bytes:
    request_id = answer.headers.get("X-Request-Id", "")
    return answer.content.replace(request_id.encode(), b"") if request_id else answer.content


async def make_fixture(
    published: PublishedProblem, stack: AsyncExitStack, settings: ContestSettings
) -> VisibilityFixture:
    contest_id, users, clients = new_id(), {}, {}
    api = published.api
    for who in VIEWERS:
        if who == "visitor":
            clients[who] = await stack.enter_async_context(api.client())
        elif who == "setter":
            users[who] = published.setter_id
            clients[who] = await stack.enter_async_context(api.client(published.setter_token))
        else:
            users[who], token = await api.user("contestant")
            clients[who] = await stack.enter_async_context(api.client(token))
    author, other = new_id(), new_id()

    async def operation(tx: Tx) -> None:
        await lifecycle.create(tx, contest_id, SLUG, settings, created_by=users["jury"])
        problem = ContestProblem(contest_id, published.problem_id, published.revision_id, "A", 0)
        await lifecycle.set_problems(tx, contest_id, [problem], actor=users["jury"], reason="")
        team = NewParticipant(author, contest_id, "one", "One", user_id=users["author"], members=(users["teammate"],))
        second = NewParticipant(other, contest_id, "two", "Two", user_id=users["other"])
        await participants.insert(tx, [team, second])
        roles = [(users["jury"], ContestRole.JUDGE), (users["balloon"], ContestRole.BALLOON)]
        await commands.grant_roles(tx, contest_id, roles, actor=users["jury"], granted_by=users["jury"])
        await lifecycle.publish(tx, contest_id, actor=users["jury"], reason="")

    await api.store.transact(operation)
    teams = {"author": author, "teammate": author, "other": other}
    return VisibilityFixture(published, contest_id, clients, users, teams)


SETTINGS = ContestSettings(
    title="Finals",
    duration_us=5 * HOUR_US,
    starts_at=NOON_US + HOUR_US,
    freeze_ct_us=4 * HOUR_US,
    problems_public=True,
)


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A server with the problem "sum", on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


def paths_of(submission_id: str, job_id: str) -> list[str]:
    """The routes that could tell of a submission."""
    one = f"/api/v1/submissions/{submission_id}"
    return [
        one,
        f"{one}/results",
        f"{one}/log",
        f"{one}/source",
        f"{one}/files",
        f"{one}/archive",
        f"{one}/judge-runs",
        f"/api/v1/judge-runs/{job_id}",
        f"/api/v1/judge-runs/{job_id}/results",
        "/api/v1/submissions",
        "/api/v1/submissions?status=pending",
        "/api/v1/submissions?status=accepted",
        "/api/v1/submissions?verdict=AC",
        "/api/v1/submissions?problem=sum",
        "/api/v1/problems",
        "/api/v1/problems?solved=true",
        "/api/v1/problems/sum",
        f"/api/v1/contests/{SLUG}",
        f"/api/v1/contests/{SLUG}/problems",
        f"/submissions/{submission_id}",
        "/submissions",
        "/problems/sum",
        "/problems",
        "/contests",
    ]


@pytest.mark.parametrize("phase", ["running", "frozen", "ended"])
async def test_verdict_changes_nothing_for_those_from_whom_it_is_hidden(
    published: PublishedProblem, stack: AsyncExitStack, phase: str
) -> None:
    """With no feedback, also the author and the team learn nothing before their end."""
    fixture = await make_fixture(published, stack, replace(SETTINGS, feedback=ContestFeedback.NONE))
    await fixture.store.clock.advance(HOUR_MS)
    await fixture.store.clock.advance(PHASES_MS[phase] - HOUR_MS)
    submission_id, job_id = await fixture.submit("author")
    paths = paths_of(submission_id, job_id)
    before = await fixture.look(paths)
    await published.finish(job_id)
    after = await fixture.look(paths)
    knows = {"jury"} | ({"author", "teammate"} if phase == "ended" else set())
    changed = {key for key in before if before[key] != after[key]}
    assert {who for who, _ in changed} <= knows, sorted(changed)
    assert ("jury", paths[0]) in changed
    for who in HIDDEN:
        for path in paths[:9]:
            assert after[who, path][0] == (401 if who == "visitor" else 404), (who, path)


@pytest.mark.parametrize(
    ("feedback", "verdict", "shows_details"),
    [(ContestFeedback.FULL, "AC", True), (ContestFeedback.PARTIAL, "AC", False), (ContestFeedback.NONE, None, False)],
)
async def test_team_sees_its_submissions_by_feedback(
    published: PublishedProblem,
    stack: AsyncExitStack,
    feedback: ContestFeedback,
    verdict: str | None,
    shows_details: bool,
) -> None:
    fixture = await make_fixture(published, stack, replace(SETTINGS, feedback=feedback))
    await fixture.store.clock.advance(PHASES_MS["running"])
    submission_id, job_id = await fixture.submit("author")
    await published.finish(job_id)
    for who in ("author", "teammate"):
        client = fixture.clients[who]
        row = (await client.get(f"/api/v1/submissions/{submission_id}", params={"wait": 30})).json()
        assert (row["verdict"], row["status"]) == (verdict, "accepted" if verdict else "pending")
        assert (row["time_ms"] is not None) is shows_details
        document = (await client.get(f"/api/v1/submissions/{submission_id}/results")).json()["document"]
        assert (document is not None) is (verdict is not None)
        assert bool(document and document["cases"]) is shows_details
        runs = (await client.get(f"/api/v1/submissions/{submission_id}/judge-runs")).json()["items"]
        assert (len(runs) == 1) is shows_details
        assert (await client.get(f"/api/v1/judge-runs/{job_id}")).status_code == (200 if shows_details else 404)
        assert (await client.get(f"/api/v1/submissions/{submission_id}/source")).text == SOURCE


async def test_hidden_submission_answers_exactly_like_a_missing_one(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    await fixture.store.clock.advance(PHASES_MS["running"])
    submission_id, job_id = await fixture.submit("author")
    await published.finish(job_id)
    missing_submission, missing_job = new_id(), new_id()
    for who in HIDDEN:
        for hidden, missing in zip(
            paths_of(submission_id, job_id)[:9], paths_of(missing_submission, missing_job)[:9], strict=True
        ):
            seen, none = await fixture.clients[who].get(hidden), await fixture.clients[who].get(missing)
            assert seen.status_code == none.status_code in (401, 404), (who, hidden)
            expected = _without_request_id(none).replace(missing_submission.encode(), submission_id.encode())
            assert _without_request_id(seen) == expected.replace(missing_job.encode(), job_id.encode()), (who, hidden)


async def test_statistics_and_solved_marks_count_a_contest_after_the_thaw(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    await fixture.store.clock.advance(PHASES_MS["running"])
    _, job_id = await fixture.submit("author")
    await published.finish(job_id)
    problem_id = published.problem_id
    stats = published.api.services.problem_stats
    assert not (await stats.get_user_progress(fixture.viewer("author"), problem_id)).is_solved
    assert (await stats.list_problem_stats()).get(problem_id) is None
    await fixture.store.clock.advance(5 * HOUR_MS)
    await fixture.store.transact(lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor="", reason=""))
    assert (await stats.get_user_progress(fixture.viewer("author"), problem_id)).is_solved
    stats.cache.invalidate(CacheEntity.PROBLEM_STATS, "all")
    assert (await stats.list_problem_stats())[problem_id].accepted == 1


async def test_authors_cannot_cancel_in_a_contest_and_the_jury_can(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    await fixture.store.clock.advance(PHASES_MS["running"])
    submission_id, _ = await fixture.submit("author")
    path = f"/api/v1/submissions/{submission_id}:cancel"
    for who in ("author", "teammate"):
        refused = await fixture.clients[who].post(path)
        assert refused.status_code == 403
        assert "cannot be canceled by their authors" in refused.json()["detail"]
    for who in ("other", "stranger"):
        assert (await fixture.clients[who].post(path)).status_code == 404
    canceled = await fixture.clients["jury"].post(path)
    assert canceled.json()["status"] == "canceled"


async def test_verdict_counts_for_its_team_when_it_is_verified_and_an_override_replaces_it(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, replace(SETTINGS, verify_required=True))
    await fixture.store.clock.advance(PHASES_MS["running"])
    submission_id, job_id = await fixture.submit("author")
    await published.finish(job_id)
    path = f"/api/v1/submissions/{submission_id}"

    async def decide(decision: JuryDecision) -> dict[str, Any]:
        async def operation(tx: Tx) -> None:
            row = await contest_submissions.find(tx, submission_id)
            await contest_submissions.decide(tx, submission_id, row.version, decision)

        await fixture.store.transact(operation)
        row: dict[str, Any] = (await fixture.clients["author"].get(path)).json()
        return row

    assert (await fixture.clients["author"].get(path)).json()["verdict"] is None
    jury = fixture.users["jury"]
    replaced = JuryDecision(override_verdict=Verdict.TLE, overridden_by=jury, override_reason="no")
    found = await decide(replaced)
    assert (found["verdict"], found["status"], found["time_ms"]) == ("TLE", "error", None), "an override counts"
    log = (await fixture.clients["author"].get(f"{path}/log")).json()["items"]
    assert "AC" not in {item["verdict"] for item in log}, "the verdict of the judge is not verified"
    assert (await fixture.clients["author"].get(f"{path}/results")).json()["document"] is None
    await decide(JuryDecision())
    assert (await decide(JuryDecision(verified_by=jury)))["verdict"] == "AC"
    overridden = JuryDecision(verified_by=jury, override_verdict=Verdict.WA, overridden_by=jury, override_reason="no")
    assert (await decide(overridden))["verdict"] == "WA"
    assert (await fixture.clients["author"].get(f"{path}/results")).json()["document"] is None


@pytest.mark.parametrize("feedback", [ContestFeedback.FULL, ContestFeedback.NONE])
async def test_event_streams_of_authors_follow_the_feedback(
    published: PublishedProblem, stack: AsyncExitStack, feedback: ContestFeedback
) -> None:
    fixture = await make_fixture(published, stack, replace(SETTINGS, feedback=feedback))
    await fixture.store.clock.advance(PHASES_MS["running"])
    events, author = published.api.services.events, fixture.viewer("author")
    submission_id, job_id = await fixture.submit("author")
    await published.finish(job_id)
    own = await published.api.services.user_events.stream(author, "0-0")
    one = await events.stream_submission(author, submission_id, None)
    for stream in (own, one):
        names = [event.name for event in await asyncio.wait_for(anext(stream), 10)]
        assert ("status" in names) is (feedback is ContestFeedback.FULL)
        await stream.aclose()


async def test_details_of_others_are_open_after_the_results_are_final_if_the_contest_says_so(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, replace(SETTINGS, submissions_public=True, freeze_ct_us=None))
    await fixture.store.clock.advance(PHASES_MS["running"])
    submission_id, job_id = await fixture.submit("author")
    await published.finish(job_id)
    await fixture.store.clock.advance(5 * HOUR_MS)
    path = f"/api/v1/submissions/{submission_id}"
    assert (await fixture.clients["other"].get(path)).status_code == 404
    await fixture.store.transact(lambda tx: lifecycle.finalize(tx, fixture.contest_id, actor="", reason=""))
    row = (await fixture.clients["other"].get(path)).json()
    assert row["verdict"] == "AC"
    assert (await fixture.clients["stranger"].get(f"{path}/source")).text == SOURCE


async def test_rejudge_batches_with_submissions_of_a_contest_are_missing_for_setters_until_the_thaw(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    fixture = await make_fixture(published, stack, SETTINGS)
    await fixture.store.clock.advance(PHASES_MS["frozen"])
    _, job_id = await fixture.submit("author")
    await published.finish(job_id, Verdict.WA, score=0)
    judge = await stack.enter_async_context(published.user_client("judge"))
    outside = await published.submit(judge)
    await published.finish(outside["job_id"], Verdict.WA, score=0)
    body = {"filter": {"problem": "sum"}, "reason": "test 1 was wrong"}
    batch_id = (await judge.post("/api/v1/rejudge-batches", json=body)).json()["id"]
    for row in await fixture.store.rows("SELECT job_id FROM rejudge_items WHERE batch_id = :id", id=batch_id):
        await published.finish(row["job_id"], Verdict.AC)
    member_id, token = await published.api.user("setter")
    member = await stack.enter_async_context(published.api.client(token))
    roles = [(member_id, ContestRole.JUDGE)]
    await fixture.store.transact(
        lambda tx: commands.grant_roles(
            tx, fixture.contest_id, roles, actor=fixture.users["jury"], granted_by=fixture.users["jury"]
        )
    )
    setter, one = fixture.clients["setter"], f"/api/v1/rejudge-batches/{batch_id}"
    for client, seen in ((judge, 2), (member, 2)):
        preview = (await client.get(f"{one}/preview?only_different=false")).json()
        assert len(preview["items"]) == preview["batch"]["total"] == seen
        assert [(item["old_verdict"], item["count"]) for item in preview["differences"]] == [("WA", seen)]
        boards = (await client.get(f"{one}/scoreboards")).json()["items"]
        assert [item["contest"] for item in boards] == [SLUG]
        assert [item["id"] for item in (await client.get("/api/v1/rejudge-batches")).json()["items"]] == [batch_id]
    missing = f"/api/v1/rejudge-batches/{new_id()}"
    for path in ("", "/preview", "/scoreboards"):
        assert (await setter.get(one + path)).status_code == (await setter.get(missing + path)).status_code == 404
    assert (await setter.get("/api/v1/rejudge-batches/1")).status_code == 404
    assert (await setter.get("/api/v1/rejudge-batches")).json() == {"items": [], "next": None}
    await fixture.store.clock.advance(HOUR_MS)
    await fixture.store.transact(lambda tx: lifecycle.thaw(tx, fixture.contest_id, actor="", reason=""))
    assert [item["id"] for item in (await setter.get("/api/v1/rejudge-batches")).json()["items"]] == [batch_id]
    after = (await setter.get(f"{one}/preview?only_different=false")).json()
    assert len(after["items"]) == 1, "who took part and how is for the jury"
    assert (await setter.get(f"{one}/scoreboards")).json()["items"] == []
