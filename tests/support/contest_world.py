"""A contest with something of every kind that may be hidden, at each of its phases, and clients of all who may look."""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from adjudge.contests import lifecycle
from adjudge.contests.registration import add_participants
from adjudge.domain.contest import ContestRole, ParticipantKind
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import Role, effective_permissions
from adjudge.domain.verdict import Verdict
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.store import Tx
from adjudge.store.contests import commands, participants, queries
from adjudge.store.contests.models import ContestGroupRow, ContestProblem, ContestSettings, NewParticipant
from adjudge.store.judging.models import NewSubmission
from tests.support.contest_app import succeeded
from tests.support.published_problem import PublishedProblem, add_problem
from tests.support.store_harness import NOON_US, StoreHarness

HOUR_US: Final = 3_600_000_000
HOUR_MS: Final = 3_600_000
SLUG: Final = "finals"
API: Final = f"/api/v1/contests/{SLUG}"
PHASES: Final = ("before", "running", "frozen", "ended", "thawed", "finalized")
VIEWERS: Final = ("visitor", "author", "teammate", "other", "balloon", "jury", "setter", "stranger")
SETTINGS: Final = ContestSettings(
    title="Finals",
    duration_us=5 * HOUR_US,
    starts_at=NOON_US + HOUR_US,
    freeze_ct_us=4 * HOUR_US,
    balloons_enabled=True,
    printing_enabled=True,
    materials_public=True,
)


@dataclass(frozen=True)
class SentSubmission:
    """A submission and its judge run."""

    id: str
    job_id: str


@dataclass
class ContestWorld:
    """The contest ``finals``: problem A is published elsewhere, problem B is not; its setter has no role.

    ``author`` and ``teammate`` are one participant, ``other`` is another one; two more are hidden and a tester.
    """

    published: PublishedProblem
    contest_id: str
    problems: dict[str, tuple[str, str]]
    """By label: the problem and its revision."""
    clients: dict[str, httpx.AsyncClient]
    users: dict[str, str]
    people: dict[str, str] = field(default_factory=dict)
    """The participants of users."""
    sent: dict[str, SentSubmission] = field(default_factory=dict)
    clarifications: dict[str, str] = field(default_factory=dict)
    batch_id: str = ""
    invitation_id: str = ""

    @property
    def store(self) -> StoreHarness:
        return self.published.api.store

    def viewer(self, who: str) -> Viewer:
        """The user as services see them."""
        permissions = effective_permissions(Role.CONTESTANT, frozenset({"*"}))
        return Viewer(self.users[who], who, Role.CONTESTANT, permissions, AuthMethod.TOKEN)

    async def submit(self, who: str, label: str) -> SentSubmission:
        """Submit for the participant of a user; the source names them."""
        problem_id, revision_id = self.problems[label]
        source = source_of(who)
        submission = NewSubmission(
            new_id(),
            self.users[who],
            problem_id,
            revision_id,
            "cpp20",
            source_digest=hashlib.sha256(source.encode()).hexdigest(),
            source_bytes=len(source),
            source_text=source,
            contest_id=self.contest_id,
            participant_id=self.people[who],
        )
        (made,) = await self.store.transact(lambda tx: self.store.submissions.submit(tx, [submission]))
        return SentSubmission(made.submission_id, made.job_id)

    async def judged(self, who: str, label: str, verdict: Verdict = Verdict.AC) -> SentSubmission:
        """Submit, and judge it."""
        sent = await self.submit(who, label)
        await self.published.finish(sent.job_id, verdict)
        return sent

    async def post(self, who: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Send a request to a route of the contest; return its document."""
        return await succeeded(await self.clients[who].post(API + path, json=body))

    async def change_settings(self, settings: ContestSettings) -> None:
        """Change all settings of the contest."""

        async def operation(tx: Tx) -> None:
            version = (await queries.find_contest(tx, self.contest_id)).version
            await lifecycle.update(
                tx, self.contest_id, settings, version=version, slug=SLUG, actor=self.users["jury"], reason=""
            )

        await self.store.transact(operation)

    async def enter(self, phase: str) -> None:
        """Let the contest reach a phase, with everything that happens until then."""
        for step in PHASES[: PHASES.index(phase) + 1]:
            await getattr(self, f"_enter_{step}")()

    async def _enter_before(self) -> None:
        await self.post("jury", "/announcements", {"body": "broadcast-plain"})
        await self.post("jury", "/announcements", {"body": "broadcast-about-a", "problem": "A"})
        await self.post("jury", "/canned-answers", {"title": "canned-title", "body": "canned-body"})
        made = await self.post("jury", "/invitations", {"note": "invitation-note"})
        self.invitation_id = made["id"] if "id" in made else made["invitation"]["id"]

        for visible in ("always", "start", "thaw"):
            await self.upload(f"{visible}.txt", f"material-{visible}", visible)

    async def upload(self, name: str, text: str, visible: str) -> None:
        """Publish a text as title and content of a material."""
        query = {"title": text, "visible": visible}
        answer = await self.clients["jury"].put(f"{API}/materials/{name}", content=text.encode(), params=query)
        await succeeded(answer)

    async def _enter_running(self) -> None:
        await self.store.clock.advance(HOUR_MS)
        self.sent["author"] = await self.judged("author", "A")
        self.sent["other"] = await self.judged("other", "B", Verdict.WA)
        self.sent["ghost"] = await self.judged("ghost", "A")
        prints = self.published.api.services.prints
        await prints.submit(self.viewer("author"), SLUG, "main.cpp", "print-of-author")
        asked = await self.post("author", "/clarifications", {"body": "question-of-one", "problem": "B"})
        self.clarifications["question"] = asked["id"]
        await self.post("jury", f"/clarifications/{asked['id']}:answer", {"body": "answer-to-one"})
        groups = {"body": "message-to-group", "audience": "groups", "groups": ["north"]}
        await self.post("jury", "/announcements", groups)

    async def _enter_frozen(self) -> None:
        await self.store.clock.advance(4 * HOUR_MS)
        self.sent["frozen"] = await self.judged("author", "B")
        self.sent["pending"] = await self.submit("author", "A")

    async def _enter_ended(self) -> None:
        await self.store.clock.advance(HOUR_MS)

    async def _enter_thawed(self) -> None:
        await self.published.finish(self.sent["pending"].job_id)
        await self.post("jury", ":thaw")

    async def _enter_finalized(self) -> None:
        await self.post("jury", ":finalize")

    async def rejudge(self) -> None:
        """Begin to judge all submissions of the contest again, as a judge of the installation."""
        async with self.published.user_client("judge") as judge:
            body = {"filter": {"contest": self.contest_id}, "reason": "rejudge-reason"}
            self.batch_id = (await succeeded(await judge.post("/api/v1/rejudge-batches", json=body)))["id"]


def source_of(who: str) -> str:
    """What a user submits."""
    return f"int main() {{}} // source-of-{who}\n"


async def make_world(
    published: PublishedProblem, stack: AsyncExitStack, settings: ContestSettings = SETTINGS
) -> ContestWorld:
    """Create and publish the contest."""
    api, contest_id = published.api, new_id()
    users, clients = {"setter": published.setter_id}, dict[str, httpx.AsyncClient]()
    clients["visitor"] = await stack.enter_async_context(api.client())
    clients["setter"] = await stack.enter_async_context(api.client(published.setter_token))
    for who in (*VIEWERS, "ghost", "probe"):
        if who not in clients:
            users[who], token = await api.user("contestant", f"user-{who}")
            clients[who] = await stack.enter_async_context(api.client(token))
    hidden = await add_problem(published, "zirkon", is_published=False)
    problems = {"A": (published.problem_id, published.revision_id), "B": hidden}
    people = {who: new_id() for who in ("author", "other", "ghost", "probe")}
    people["teammate"] = people["author"]
    world = ContestWorld(published, contest_id, problems, clients, users, people)
    await api.store.transact(lambda tx: _write(tx, world, settings))
    del clients["ghost"], clients["probe"]
    return world


async def _write(tx: Tx, world: ContestWorld, settings: ContestSettings) -> None:
    contest_id, users, people, jury = world.contest_id, world.users, world.people, world.users["jury"]
    await lifecycle.create(tx, contest_id, SLUG, settings, created_by=jury)
    listed = [
        ContestProblem(contest_id, *world.problems["A"], "A", 0, alias="Malachite", rgb="#0bda51"),
        ContestProblem(contest_id, *world.problems["B"], "B", 1, rgb="#8fa8b1"),
    ]
    await lifecycle.set_problems(tx, contest_id, listed, actor=jury, reason="reason-of-jury")
    north, secret = new_id(), new_id()
    groups = [
        ContestGroupRow(north, contest_id, "north", "Group North"),
        ContestGroupRow(secret, contest_id, "secret", "Group Secret", hidden=True),
    ]
    await participants.upsert_groups(tx, groups)
    new = [
        NewParticipant(
            people["author"], contest_id, "one", "Team One", user_id=users["author"], members=(users["teammate"],)
        ),
        NewParticipant(people["other"], contest_id, "two", "Team Two", user_id=users["other"]),
        NewParticipant(people["ghost"], contest_id, "ghost", "Team Ghost", user_id=users["ghost"], hidden=True),
        NewParticipant(
            people["probe"], contest_id, "probe", "Team Probe", ParticipantKind.TEST, user_id=users["probe"]
        ),
    ]
    await add_participants(tx, contest_id, new, actor=jury)
    pairs = [(north, people["other"]), (secret, people["other"])]
    await participants.set_groups(tx, [people["other"]], pairs)
    roles = [
        (jury, ContestRole.ORGANISER),
        (jury, ContestRole.JUDGE),
        (users["balloon"], ContestRole.BALLOON),
    ]
    await commands.grant_roles(tx, contest_id, roles, actor=jury, granted_by=jury)
    await lifecycle.publish(tx, contest_id, actor=jury, reason="reason-of-jury")
