"""Who sees what of a contest: every route as everybody in every phase.

Each kind of information has a text that is nowhere else; a literal table says who may read it. No response contains a
text that its reader may not see, and everybody finds what they may. Changes that somebody may not know of change no
byte, ETag or count of their responses, and no event of their streams. Hidden objects answer like missing ones.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests.ccs.version import CcsCollection
from adjudge.contests.live_board import ALL_ROWS
from adjudge.domain.contest import ContestFeedback, ContestVisibility, ScoreboardVisibility
from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.models import ContestSettings
from tests.support.asgi_app import make_app
from tests.support.contest_routes import READ_ROUTES, STREAM_ROUTES, all_routes, expand
from tests.support.contest_world import PHASES, SETTINGS, SLUG, VIEWERS, ContestWorld, make_world
from tests.support.published_problem import OPEN_GATE, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import StoreHarness

pytestmark = pytest.mark.slow

NOBODY, JURY, EVERYBODY = frozenset[str](), frozenset({"jury"}), frozenset(VIEWERS)
TEAM = frozenset({"author", "teammate"})
PEOPLE = TEAM | {"other"}
SETTER = frozenset({"setter"})
"""The owner of both problems: sees them always, and submissions to them after the thaw."""


@dataclass(frozen=True)
class Information:
    """A text, and who may read it before, while the contest runs, until the thaw, and afterwards."""

    text: str
    before: frozenset[str]
    running: frozenset[str]
    frozen: frozenset[str]
    thawed: frozenset[str]

    def readers(self, phase: str) -> frozenset[str]:
        columns = {"before": self.before, "running": self.running, "thawed": self.thawed, "finalized": self.thawed}
        return columns.get(phase, self.frozen)


def always(text: str, readers: frozenset[str]) -> Information:
    return Information(text, readers, readers, readers, readers)


def since_start(text: str, readers: frozenset[str], thawed: frozenset[str] = NOBODY) -> Information:
    return Information(text, NOBODY, readers, readers, readers | thawed)


INFORMATION = (
    always("Finals", EVERYBODY),
    Information("Malachite", JURY, PEOPLE | JURY, PEOPLE | JURY, EVERYBODY),  # the alias of a published problem
    Information("Zirkon", JURY | SETTER, PEOPLE | JURY | SETTER, PEOPLE | JURY | SETTER, PEOPLE | JURY | SETTER),
    always("Team One", EVERYBODY),
    always("Team Ghost", JURY),
    always("Team Probe", JURY),
    always("Group North", EVERYBODY),
    always("Group Secret", JURY),
    always("broadcast-plain", EVERYBODY),
    Information("broadcast-about-a", JURY, EVERYBODY, EVERYBODY, EVERYBODY),
    since_start("question-of-one", TEAM | JURY),
    since_start("answer-to-one", TEAM | JURY),
    since_start("message-to-group", JURY | {"other"}),
    since_start("print-of-author", TEAM | JURY),
    always("material-always", EVERYBODY),
    Information("material-start", JURY, PEOPLE | JURY, PEOPLE | JURY, PEOPLE | JURY),
    Information("material-thaw", JURY, JURY, JURY, EVERYBODY),
    always("canned-body", JURY),
    always("invitation-note", JURY),
    since_start("rejudge-reason", JURY, SETTER),
    since_start("source-of-author", TEAM | JURY, SETTER),
    since_start("source-of-ghost", JURY, SETTER),
    since_start("secret answer is 42", JURY, SETTER),  # a message of the checker
)
REASONS = ("reason-of-jury",)
"""In the audit log, for operators alone."""


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


@pytest.fixture
async def world(store: StoreHarness, tmp_path: Path, stack: AsyncExitStack) -> ContestWorld:
    """The contest before its start, on each database in turn."""
    api = await stack.enter_async_context(make_app(store, tmp_path, OPEN_GATE))
    add_pages(api.app, api.services)
    return await make_world(await publish_problem(api), stack)


def paths_of(world: ContestWorld) -> list[str]:
    """Every path, with the ids of objects that are there, also of hidden ones; missing ones where there are none."""
    missing = new_id()
    sent = [world.sent[name] for name in ("author", "ghost", "frozen", "pending") if name in world.sent]
    values = {
        "contest": [SLUG],
        "slug": [SLUG],
        "label": ["A", "B"],
        "participant": [world.people["author"], world.people["ghost"], "one", "ghost"],
        "code": ["one", "ghost"],
        "submission_id": [item.id for item in sent] or [missing],
        "job_id": [item.job_id for item in sent] or [missing],
        "clarification_id": [world.clarifications.get("question", missing)],
        "problem": ["sum", "zirkon"],
        "user": ["user-author"],
        "batch_id": [world.batch_id or missing],
        "number": ["1", "3"],
        "print_number": ["1"],
        "path": ["1.in"],
        "material": ["always.txt", "start.txt", "thaw.txt"],
        "collection": [str(item) for item in CcsCollection if item not in (CcsCollection.CONTEST, CcsCollection.STATE)],
        "object_id": ["1", "3", "ghost"],
    }
    found: list[str] = []
    for template in READ_ROUTES:
        names = ["sum", "zirkon"] if "{name}" in template else ["main.cpp"]
        found += expand(template, values | {"name": names})
    return found


class Snapshot(dict[tuple[str, str], tuple[int, str | None, str]]):
    """Status, ETag and body of every path as everybody."""


async def look(world: ContestWorld, who: Iterable[str] = VIEWERS, paths: list[str] | None = None) -> Snapshot:
    found = Snapshot()
    for viewer in who:
        client = world.clients[viewer]
        for path in paths or paths_of(world):
            answer = await client.get(path)
            assert answer.status_code < 500, (viewer, path, answer.text)
            found[viewer, path] = (answer.status_code, answer.headers.get("ETag"), _stable(answer))
    return found


def _stable(answer: httpx.Response) -> str:
    """The body without what differs between equal requests: their id, the time, and tokens of forms."""
    text = answer.text.replace(answer.headers.get("X-Request-Id") or "\0", "")
    return re.sub(r'(name="csrf" value|name="style-nonce" content)="[^"]*"', "", text)


@pytest.mark.parametrize("phase", PHASES)
async def test_everybody_finds_what_the_table_says_and_nothing_else(world: ContestWorld, phase: str) -> None:
    await world.enter(phase)
    if phase != "before":
        await world.rejudge()
    found = await look(world)
    for item in INFORMATION:
        readers = item.readers(phase)
        seen = {who for (who, _), (_, _, body) in found.items() if item.text in body}
        leaks = [key for key, (_, _, body) in found.items() if item.text in body and key[0] not in readers]
        assert not leaks, f"{item.text} is visible: {leaks}"
        assert seen == readers, f"{item.text} is not found by {sorted(readers - seen)}"
    for text in REASONS:
        assert not [key for key, (_, _, body) in found.items() if text in body and key[0] != "jury"], text


@pytest.mark.parametrize("phase", PHASES[1:])
async def test_ids_of_submissions_are_public_except_those_of_hidden_participants(
    world: ContestWorld, phase: str
) -> None:
    await world.enter(phase)
    paths = [path for path in paths_of(world) if not any(item.id in path for item in world.sent.values())]
    found = await look(world, paths=paths)
    for name, readers in (("author", EVERYBODY), ("ghost", JURY | (SETTER if phase in PHASES[4:] else NOBODY))):
        seen = {who for (who, _), (_, _, body) in found.items() if world.sent[name].id in body}
        assert seen == readers, name


Change = Callable[[ContestWorld], Awaitable[object]]


async def _judge(world: ContestWorld) -> None:
    await world.published.finish(world.sent["pending"].job_id)


async def _ask(world: ContestWorld) -> None:
    await world.post("author", "/clarifications", {"body": "another-question"})


async def _print(world: ContestWorld) -> None:
    await world.post("author", "/prints", {"content": "another-print"})


async def _upload(world: ContestWorld) -> None:
    await world.upload("editorial.txt", "editorial", "thaw")


async def _decide(world: ContestWorld) -> None:
    await world.post("jury", "/canned-answers", {"title": "more", "body": "more"})
    await world.post("jury", "/roles", {"user": "user-balloon", "role": "print"})
    await world.post("jury", "/invitations", {"note": "more"})


async def _rejudge(world: ContestWorld) -> None:
    await world.rejudge()


async def _ghost(world: ContestWorld) -> None:
    await world.judged("ghost", "B")


async def _tester(world: ContestWorld) -> None:
    await world.judged("probe", "A", Verdict.WA)


async def _problems(world: ContestWorld) -> None:
    body = {"problems": [{"problem": "sum", "alias": "Malachite", "points": 7}]}
    answer = await world.clients["jury"].put(f"/api/v1/contests/{SLUG}/problems", json=body)
    assert answer.is_success, answer.text


CHANGES: tuple[tuple[str, Change, frozenset[str], tuple[str, ...]], ...] = (
    ("a verdict in the freeze", _judge, TEAM | JURY, ("frozen", "ended")),
    ("a question", _ask, TEAM | JURY, ("running", "frozen", "ended", "thawed")),
    ("a print job", _print, TEAM | JURY, ("running", "frozen")),
    ("a material for after the thaw", _upload, JURY, ("before", "running", "frozen", "ended")),
    ("work of the jury", _decide, JURY | {"balloon"}, PHASES),
    ("a rejudge batch", _rejudge, JURY | SETTER, ("thawed",)),
    ("a rejudge batch until the thaw", _rejudge, JURY, ("running", "frozen", "ended")),
    ("a submission of a hidden participant", _ghost, JURY, ("running", "frozen")),
    ("a submission of a tester", _tester, JURY, ("before", "running", "frozen")),
    ("the problems before the start", _problems, JURY, ("before",)),
)
"""What may happen, who may notice, and when."""


@pytest.mark.parametrize("phase", PHASES)
async def test_hidden_changes_change_no_byte_etag_or_count(world: ContestWorld, phase: str) -> None:
    await world.enter(phase)
    paths, before = paths_of(world), Snapshot()
    for name, change, knows, phases in CHANGES:
        if phase not in phases:
            continue
        others = [who for who in VIEWERS if who not in knows]
        before |= await look(world, (who for who in others if (who, paths[0]) not in before), paths)
        await change(world)
        after = await look(world, others, paths)
        changed = [key for key in after if before[key] != after[key]]
        assert not changed, f"{name} is visible: {changed}"
        before = after


HIDDEN_SCOREBOARD = replace(SETTINGS, scoreboard_visibility=ScoreboardVisibility.HIDDEN)
STAFF = JURY | {"balloon"}
"""Balloon staff learn who solved a problem."""


@pytest.mark.parametrize(
    ("settings", "knows"),
    [
        (HIDDEN_SCOREBOARD, TEAM | STAFF),
        (replace(SETTINGS, scoreboard_visibility=ScoreboardVisibility.PARTICIPANTS), PEOPLE | STAFF),
        (replace(HIDDEN_SCOREBOARD, feedback=ContestFeedback.NONE), STAFF),
        (replace(SETTINGS, verify_required=True), JURY),
    ],
    ids=["hidden-scoreboard", "scoreboard-of-participants", "no-feedback", "verification"],
)
async def test_verdict_changes_nothing_for_those_from_whom_settings_hide_it(
    world: ContestWorld, settings: ContestSettings, knows: frozenset[str]
) -> None:
    await world.change_settings(settings)
    await world.enter("running")
    world.sent["pending"] = await world.submit("author", "B")
    paths, who = paths_of(world), [who for who in VIEWERS if who not in knows or who == "jury"]
    before = await look(world, who, paths)
    await _judge(world)
    after = await look(world, who, paths)
    assert {who for who, path in before if before[who, path] != after[who, path]} == JURY


@pytest.mark.parametrize("phase", ["running", "frozen"])
async def test_streams_of_others_send_nothing_of_hidden_changes(world: ContestWorld, phase: str) -> None:
    """After the hidden change follows one that is public: it is the first event of every stream."""
    await world.enter(phase)
    services = world.published.api.services
    streams = {
        who: await services.scoreboards.stream(
            world.viewer(who), SLUG, is_jury=False, which=ALL_ROWS, last_event_id=None
        )
        for who in ("other", "stranger")
    }
    own = await services.user_events.stream(world.viewer("other"), None)
    for stream in streams.values():
        assert await asyncio.wait_for(anext(stream), 10) == ": alive\n\n"
    assert [event.data for event in await asyncio.wait_for(anext(own), 10)] == [None]
    await _ask(world)
    await _ghost(world)
    if phase == "frozen":
        await _judge(world)
    public = await world.judged("other", "A")
    for who, stream in streams.items():
        event = await asyncio.wait_for(anext(stream), 20)
        assert "Team Two" in event, who
        assert "Team Ghost" not in event
        assert "Team One" not in event
        await stream.aclose()
    events = [event for event in await asyncio.wait_for(anext(own), 20) if event.data is not None]
    assert events
    assert all(public.id in str(event.data) for event in events)
    await own.aclose()


MISSING = "nothing-like-it"


def _alike(answer: httpx.Response, name: str) -> tuple[int, str, dict[str, str]]:
    """A response without its id, the time and the name of what was asked for."""
    text = _stable(answer).replace(name, "NAME")
    unlike = {"x-request-id", "date", "content-length", "content-security-policy", "traceparent", "set-cookie"}
    headers = {key: value.replace(name, "NAME") for key, value in answer.headers.items() if key not in unlike}
    return answer.status_code, text, headers


@pytest.mark.parametrize("kind", ["draft", "private"])
async def test_hidden_contest_answers_on_every_route_like_a_missing_one(
    store: StoreHarness, tmp_path: Path, stack: AsyncExitStack, kind: str
) -> None:
    """Every method of every route of contests, as those who must not know of the contest."""
    api = await stack.enter_async_context(make_app(store, tmp_path, OPEN_GATE))
    add_pages(api.app, api.services)
    settings = replace(SETTINGS, visibility=ContestVisibility.PRIVATE if kind == "private" else SETTINGS.visibility)
    world = await make_world(await publish_problem(api), stack, settings)
    outsiders = ["visitor", "stranger", "setter"]
    if kind == "draft":
        await world.post("jury", ":unpublish", {"reason": "not yet"})
        outsiders += ["author", "other"]
    routes = [
        (method, path)
        for method, path in all_routes(api.app)
        if re.match(r"(/api/v1)?/contests/\{\w+\}", path) and path not in STREAM_ROUTES
    ]
    assert len(routes) > 80
    wrong = []
    for method, template in routes:
        own = next(expand(template, _ONE_OF_EACH))
        for who in outsiders:
            answers = []
            for name in (SLUG, MISSING):
                path = own.replace(SLUG, name, 1)
                form = {"data": {"reason": "x"}} if not path.startswith("/api") else {"json": dict[str, str]()}
                sent: dict[str, Any] = {} if method in ("GET", "DELETE") else form
                answers.append(_alike(await world.clients[who].request(method, path, **sent), name))
            if answers[0] != answers[1]:
                wrong.append((who, method, template, answers[0][0], answers[1][0]))
    assert not wrong, "\n".join(map(str, wrong))


class _Parameters(dict[str, list[str]]):
    """Values of the parameters of paths; one that is not given is an id of nothing."""

    def __missing__(self, name: str) -> list[str]:
        return [new_id()]


_ONE_OF_EACH = _Parameters(
    contest=[SLUG],
    slug=[SLUG],
    label=["A"],
    number=["1"],
    print_number=["1"],
    role=["judge"],
    action=["publish"],
    participant=["one"],
)


@pytest.mark.parametrize("phase", PHASES[:5])
async def test_hidden_objects_of_a_visible_contest_answer_like_missing_ones(world: ContestWorld, phase: str) -> None:
    """Problems before the start, and always hidden participants, submissions of others and questions of others."""
    await world.enter(phase)
    missing = new_id()
    ghost = world.sent["ghost"].id if phase != "before" else missing
    pairs = [
        (f"/api/v1/contests/{SLUG}/participants/{{}}", "ghost", MISSING),
        (f"/api/v1/contests/{SLUG}/participants/{{}}", world.people["ghost"], missing),
        (f"/contests/{SLUG}/participants/{{}}", "ghost", MISSING),
        (f"/api/v1/contests/{SLUG}/scoreboard/cells/{{}}/A", world.people["ghost"], missing),
        (f"/contests/{SLUG}/scoreboard/{{}}/A", world.people["ghost"], missing),
        (f"/contests/{SLUG}/clarifications/{{}}", world.clarifications.get("question", missing), missing),
        *(
            (f"/api/v1/submissions/{{}}{part}", ghost, missing)
            for part in ("", "/source", "/files", "/log", "/results")
        ),
        ("/submissions/{}", ghost, missing),
        ("/submissions/{}/state", ghost, missing),
    ]
    if phase != "thawed":
        pairs.append((f"/api/v1/contests/{SLUG}/materials/{{}}", "thaw.txt", MISSING))
    if phase == "before":
        pairs += [
            (f"/api/v1/contests/{SLUG}/problems/{{}}", "zirkon", MISSING),
            (f"/api/v1/contests/{SLUG}/problems/{{}}/files/x", "zirkon", MISSING),
            (f"/contests/{SLUG}/problems/{{}}", "zirkon", MISSING),
        ]
    wrong = []
    for who in ("visitor", "stranger", "other", "balloon"):
        for path, hidden, none in pairs:
            client = world.clients[who]
            found, lacking = await client.get(path.format(hidden)), await client.get(path.format(none))
            if _alike(found, hidden) != _alike(lacking, none):
                wrong.append((who, path, found.status_code, lacking.status_code))
    assert not wrong, "\n".join(map(str, wrong))
