"""Contests that were held on a test installation, to be moved to another one: made over the API and in the store."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx

from adjudge.contests import jury
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Role, effective_permissions
from adjudge.domain.states import JobStatus
from adjudge.domain.timestamps import format_timestamp
from adjudge.domain.verdict import Verdict
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.store import Tx
from adjudge.store.contests import participants, queries
from adjudge.store.contests import submissions as contest_submissions
from adjudge.store.contests.submissions import JuryDecision
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.models import CaseResultRow, Judgement, NewSubmission
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.contest_app import succeeded
from tests.support.problem_packages import icpc_package, import_package, zip_files
from tests.support.store_harness import NOON_US, StoreHarness, fence_of

HOUR_US: Final = 3_600_000_000
MINUTE_MS: Final = 60_000
CONTESTS: Final = "/api/v1/contests"
EXPORTS: Final = ("scoreboard.json", "scoreboard.csv", "scoreboard.html", "results.tsv", "awards.json")
SUBTASKS: Final = {
    "score": 40,
    "max_score": 100,
    "groups": [
        {"path": "", "score": 40},
        {"path": "secret", "score": 40},
        {"path": "secret/1", "score": 40},
        {"path": "secret/2", "score": 0},
    ],
}


@dataclass
class Installation:
    """An installation with an administrator, whose client it has."""

    api: AsgiApp
    folder: Path
    admin: httpx.AsyncClient
    admin_id: str
    token: str

    @property
    def viewer(self) -> Viewer:
        """The administrator as services see them."""
        return Viewer(
            self.admin_id, "root", Role.ADMIN, effective_permissions(Role.ADMIN, frozenset({"*"})), AuthMethod.TOKEN
        )

    async def export(self, slug: str, **query: Any) -> bytes:
        """The package of a contest."""
        answer = await self.admin.get(f"{CONTESTS}/{slug}/package", params=query)
        assert answer.status_code == 200, answer.text
        return answer.content

    async def import_contest(self, data: bytes, **query: Any) -> dict[str, Any]:
        """Import a package; return the report."""
        found: dict[str, Any] = await succeeded(await self.admin.post(f"{CONTESTS}:import", content=data, params=query))
        return found

    async def boards(self, slug: str) -> dict[str, bytes]:
        """All exports of the scoreboard in both views, with codes in place of ids."""
        names = await self._names(slug)
        found = {}
        for view in ("public", "jury"):
            for name in EXPORTS:
                answer = await self.admin.get(f"{CONTESTS}/{slug}/{name}", params={"view": view})
                body = answer.content
                for object_id, code in names.items():
                    body = body.replace(object_id.encode(), code.encode())
                found[f"{view} {name}"] = str(answer.status_code).encode() + body
        return found

    async def settings(self, slug: str) -> dict[str, Any]:
        """The contest as the API shows it, without ids and versions."""
        found: dict[str, Any] = await succeeded(await self.admin.get(f"{CONTESTS}/{slug}"))
        return {key: value for key, value in found.items() if key not in _OWN}

    async def _names(self, slug: str) -> dict[str, str]:
        async def read(tx: Tx) -> dict[str, str]:
            contest = await queries.find_contest(tx, slug)
            people = await participants.page(tx, contest.id, limit=1_000)
            groups = await participants.groups(tx, contest.id)
            problems = await queries.problems(tx, contest.id)
            found = {item.id: item.code for item in people} | {item.id: item.code for item in groups}
            return found | {row.problem.problem_id: row.slug for row in problems}

        return await self.api.store.database.read(read)


_OWN: Final = frozenset({"id", "version", "created_at", "updated_at", "roles", "now"})


@asynccontextmanager
async def installation(store: StoreHarness, folder: Path) -> AsyncIterator[Installation]:
    """An installation on a store."""
    folder.mkdir()
    async with make_app(store, folder, {"admission.user_burst": 10_000}) as api:
        admin_id, token = await api.user("admin", "root")
        async with api.client(token) as client:
            yield Installation(api, folder, client, admin_id, token)


@dataclass
class HeldContest:
    """A contest of an installation; time passes, teams submit, the jury decides."""

    place: Installation
    slug: str
    users: dict[str, str] = field(default_factory=dict)
    """Team → its user."""

    @property
    def path(self) -> str:
        return f"{CONTESTS}/{self.slug}"

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to a route of the contest."""
        return await succeeded(await self.place.admin.request(method, self.path + path, json=body))

    async def advance(self, minutes: float) -> None:
        """Let time pass."""
        await self.place.api.store.clock.advance(round(minutes * MINUTE_MS))

    async def add(self, code: str, **fields: Any) -> None:
        """Add a participant: a team with one member."""
        user_id, _ = await self.place.api.user("contestant", f"user-{code}")
        self.users[code] = user_id
        body = {"code": code, "name": f"Team {code}", "members": [user_id]} | fields
        await self.call("POST", "/participants", body)

    async def submit(
        self, code: str, label: str, verdict: Verdict | None, document: dict[str, Any] | None = None
    ) -> int:
        """Submit, and judge it unless there is no verdict; return the number in the contest."""
        store, source = self.place.api.store, f"int main() {{}} // {code} {label}\n"

        async def look(tx: Tx) -> NewSubmission:
            contest = await queries.find_contest(tx, self.slug)
            row = next(item for item in await queries.problems(tx, contest.id) if item.problem.label == label)
            person = (await participants.find_by_codes(tx, contest.id, [code]))[code]
            return NewSubmission(
                new_id(),
                self.users[code],
                row.problem.problem_id,
                row.problem.revision_id,
                "cpp20",
                source_digest=hashlib.sha256(source.encode()).hexdigest(),
                source_bytes=len(source),
                source_text=source,
                contest_id=contest.id,
                participant_id=person.id,
            )

        new = await store.database.read(look)
        (made,) = await store.transact(lambda tx: store.submissions.submit(tx, [new]))
        if verdict is not None:
            (job,) = (await store.claim(made.job_id)).done
            case = CaseResultRow("secret/1", verdict, 7, 9, 1_024, "secret", message="checked")
            score = None if document is None else float(document["score"])
            result = JobResult(
                fence_of(job),
                JobStatus.FAILED if verdict is Verdict.SE else JobStatus.SUCCEEDED,
                result={"verdict": str(verdict)} | (document or {}),
                typed_result=Judgement(verdict, score, 7, 1_024, (case,)),
            )
            await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [result]))
        found = await store.database.read(lambda tx: contest_submissions.find(tx, made.submission_id))
        return found.number

    async def decide(self, number: int, **fields: Any) -> None:
        """A decision of the jury."""
        store, actor = self.place.api.store, self.place.admin_id

        async def operation(tx: Tx) -> None:
            contest = await queries.find_contest(tx, self.slug)
            row = await contest_submissions.find_by_number(tx, contest.id, number)
            decision = replace(JuryDecision(), **fields)
            await jury.decide(tx, row.submission_id, decision, version=row.version, actor=actor, reason="")

        await store.transact(operation)


async def hold(place: Installation, slug: str, problems: list[dict[str, Any]], **settings: Any) -> HeldContest:
    """Create a contest with imported problems; it starts an hour after noon."""
    body = {
        "slug": slug,
        "title": f"The {slug}",
        "duration_sec": 18_000,
        "starts_at": format_timestamp(NOON_US + HOUR_US),
    }
    contest = HeldContest(place, slug)
    await succeeded(await place.admin.post(CONTESTS, json=body | settings))
    for item in problems:
        data = zip_files(icpc_package(item["problem"].title()))
        done = await import_package(place.api, place.folder, place.token, data, slug=item["problem"])
        assert done["state"] == "succeeded", done
    await contest.call("PUT", "/problems", {"problems": problems})
    return contest


async def hold_icpc(place: Installation) -> HeldContest:
    """An ICPC contest with everything that the scoreboard depends on; it ends frozen."""
    problems = [
        {"problem": "apples", "rgb": "#ff0000", "color": "red"},
        {"problem": "bridges", "alias": "Bridges of B", "rgb": "#00ff00"},
    ]
    contest = await hold(
        place,
        "finals",
        problems,
        freeze_after_sec=14_400,
        balloons_enabled=True,
        verify_required=False,
        clarification_categories=["rules"],
        format_cfg={"penalty_minutes": 15},
        description="Rules: *be fair*.",
    )
    guests = {"code": "guests", "name": "Guests", "ranked": False}
    await contest.call("PUT", "/groups", {"groups": [{"code": "north", "name": "North"}, guests]})
    await contest.call("POST", "/organizations", {"code": "uni", "name": "University", "country": "NOR"})
    await contest.add("t1", organization="uni", groups=["north"], location="Row 1")
    await contest.add("t2", groups=["north", "guests"], label="2b")
    await contest.add("t3")
    await contest.add("t4", kind="unofficial")
    await contest.add("t5", hidden=True)
    solo_id, _ = await place.api.user("contestant", "solo")
    contest.users["solo"] = solo_id
    await contest.call("POST", "/participants", {"user": "solo", "code": "solo"})
    judge_id, _ = await place.api.user("contestant", "jay")
    await contest.call("POST", "/roles", {"user": "jay", "role": "judge"})
    await contest.call("POST", ":publish")
    await contest.advance(60 + 10)
    await contest.submit("t1", "A", Verdict.WA)
    await contest.submit("t1", "A", Verdict.AC)
    ignored = await contest.submit("t2", "A", Verdict.AC)
    overridden = await contest.submit("t3", "B", Verdict.WA)
    await contest.submit("t4", "A", Verdict.AC)
    await contest.submit("solo", "B", Verdict.CE)
    await contest.call("POST", ":pause", {"reason": "power cut"})
    await contest.advance(12.5)
    await contest.call("POST", ":resume", {"reason": ""})
    await contest.advance(60)
    await contest.submit("t2", "B", Verdict.AC)
    await contest.submit("t5", "B", Verdict.AC)
    await contest.decide(ignored, is_ignored=True)
    await contest.decide(overridden, override_verdict=Verdict.AC, overridden_by=judge_id, override_reason="typo")
    await contest.call("PATCH", "/participants/t3", {"extra_sec": 600, "reason": "power cut"})
    await contest.call("PATCH", "/participants/t4", {"disqualified": True, "reason": "cheating"})
    question = await contest.call("POST", "/announcements", {"body": "Read problem A again.", "problem": "A"})
    assert question["number"] == 1
    await contest.call("POST", "/canned-answers", {"title": "no", "body": "No comment."})
    await succeeded(
        await place.admin.put(f"{CONTESTS}/finals/materials/rules.txt", content=b"be fair", params={"visible": "start"})
    )
    await contest.advance(150)
    await contest.submit("t1", "B", Verdict.AC)
    await contest.submit("t3", "A", Verdict.RE)
    await contest.advance(60)
    return contest


async def hold_ioi(place: Installation) -> HeldContest:
    """A contest with subtasks and points, individual windows and virtual participations."""
    problems = [{"problem": "harvest", "points": 100}, {"problem": "islands", "points": 50}]
    contest = await hold(place, "olympiad", problems, format="ioi", window_sec=7_200, feedback="partial")
    await contest.add("w1")
    await contest.add("w2", kind="official")
    await contest.call("POST", ":publish")
    await contest.advance(60)
    for code in ("w1", "w2"):
        await _start_window(contest, code)
    await contest.advance(30)
    await contest.submit("w1", "A", Verdict.PA, SUBTASKS)
    second = SUBTASKS | {
        "score": 60,
        "groups": [{"path": "", "score": 60}, {"path": "1", "score": 0}, {"path": "2", "score": 60}],
    }
    await contest.submit("w1", "A", Verdict.PA, second)
    await contest.submit("w2", "B", Verdict.AC, {"score": 33.333333, "max_score": 50, "groups": []})
    late = await contest.submit("w2", "A", Verdict.SE)
    await contest.decide(late, override_verdict=Verdict.PA, override_score_micro=12_500_000)
    await contest.advance(300)
    user_id, token = await place.api.user("contestant", "virtual")
    async with place.api.client(token) as client:
        await succeeded(await client.post(f"{contest.path}:start-virtual"))
    await contest.advance(5)
    assert user_id
    return contest


async def hold_homework(place: Installation) -> HeldContest:
    """A homework with a deadline and late submissions; one of them waits for the judge."""
    settings = {
        "format": "homework",
        "format_cfg": {"deadline_sec": 3_600, "late_penalty_percent_per_day": 30},
        "verify_required": True,
    }
    contest = await hold(place, "homework", [{"problem": "loops", "points": 10}], **settings)
    await contest.add("s1")
    await contest.add("s2")
    await contest.call("POST", ":publish")
    await contest.advance(70)
    first = await contest.submit("s1", "A", Verdict.PA, {"score": 50, "max_score": 100, "groups": []})
    await contest.decide(first, verified_by=place.admin_id)
    await contest.advance(60)
    await contest.submit("s1", "A", Verdict.AC, {"score": 100, "max_score": 100, "groups": []})
    await contest.submit("s2", "A", None)
    return contest


async def _start_window(contest: HeldContest, code: str) -> None:
    async def operation(tx: Tx) -> None:
        found = await queries.find_contest(tx, contest.slug)
        person = (await participants.find_by_codes(tx, found.id, [code]))[code]
        await participants.start(tx, person.id)

    await contest.place.api.store.transact(operation)
