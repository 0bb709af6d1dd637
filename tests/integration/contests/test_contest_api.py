"""The Contest API in both versions, for pass-fail and score contests, in every phase, as everybody.

Every response conforms to the schemas of the specification, has the properties that ``access`` lists and no others,
refers only to objects that the reader can read, and shows of judgements what the reader may know.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.responses import JSONResponse

from adjudge.contests.ccs.version import CcsCollection, CcsVersion, convert
from adjudge.domain.contest import ContestFeedback, ContestFormat, ScoreboardVisibility
from adjudge.domain.verdict import Verdict
from adjudge.store.contests import participants
from tests.support import ccs_schemas as schemas
from tests.support.asgi_app import make_app
from tests.support.contest_app import succeeded
from tests.support.contest_world import HOUR_MS, HOUR_US, PHASES, SETTINGS, SLUG, ContestWorld, make_world
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness

READERS = ("visitor", "author", "other", "balloon", "jury")
REFERENCES = {
    "language_id": "languages",
    "problem_id": "problems",
    "team_id": "teams",
    "from_team_id": "teams",
    "to_team_id": "teams",
    "to_team_ids": "teams",
    "team_ids": "teams",
    "organization_id": "organizations",
    "group_ids": "groups",
    "to_group_ids": "groups",
    "main_scoreboard_group_id": "groups",
    "submission_id": "submissions",
    "judgement_id": "judgements",
    "judgement_type_id": "judgement-types",
    "simplified_judgement_type_id": "judgement-types",
    "reply_to_id": "clarifications",
    "account_id": "accounts",
    "person_id": "persons",
}
Found = dict[str, list[dict[str, Any]]]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as entered:
        yield entered


@pytest.fixture
async def published(store: StoreHarness, tmp_path: Path, stack: AsyncExitStack) -> PublishedProblem:
    """A problem on each database in turn."""
    return await publish_problem(await stack.enter_async_context(make_app(store, tmp_path, OPEN_GATE)))


async def read(client: httpx.AsyncClient, path: str) -> Any:
    return await succeeded(await client.get(path))


async def read_all(client: httpx.AsyncClient, version: CcsVersion) -> Found:
    root = f"/api/{version}/contests/{SLUG}"
    return {name: await read(client, f"{root}/{name}") for name in schemas.COLLECTIONS}


def check_schemas(found: Found, version: CcsVersion) -> None:
    for name, objects in found.items():
        assert schemas.errors_of(objects, schemas.array(schemas.COLLECTIONS[name](version))) == [], name


def check_references(found: Found, contest: dict[str, Any]) -> None:
    known = {name: {item["id"] for item in objects} for name, objects in found.items()}
    for name, objects in [*found.items(), ("contest", [contest])]:
        for item in objects:
            for key, target in REFERENCES.items():
                values = item.get(key, [])
                missing = set(values if isinstance(values, list) else [values]) - known[target]
                assert not missing, f"{name}: {key} {missing} is not in {target}"


def check_access(found: Found, singletons: dict[str, Any], access: dict[str, Any]) -> None:
    listed = {item["type"]: set(item["properties"]) for item in access["endpoints"]}
    for name, objects in [*found.items(), *((name, [item]) for name, item in singletons.items())]:
        assert not objects or name in listed, f"{name} is served and not listed"
        for item in objects:
            assert item.keys() <= listed[name], f"{name}: {item.keys() - listed[name]} is not listed"


@pytest.mark.slow
@pytest.mark.parametrize("scoring", [ContestFormat.ICPC, ContestFormat.IOI])
@pytest.mark.parametrize("phase", PHASES)
async def test_every_response_is_as_specified(
    published: PublishedProblem, stack: AsyncExitStack, phase: str, scoring: ContestFormat
) -> None:
    world = await make_world(published, stack, replace(SETTINGS, format=scoring, submissions_public=True))
    await world.enter(phase)
    for who in READERS:
        client = world.clients[who]
        for version in CcsVersion:
            root = f"/api/{version}"
            assert schemas.errors_of(await read(client, root), schemas.information(version)) == []
            contests = await read(client, f"{root}/contests")
            contest = await read(client, f"{root}/contests/{SLUG}")
            assert contests == [contest]
            assert schemas.errors_of(contest, schemas.contest(version)) == []
            found = await read_all(client, version)
            check_schemas(found, version)
            singles = {name: await client.get(f"{root}/contests/{SLUG}/{name}") for name in schemas.SINGLETONS}
            if who == "visitor":
                answer = singles.pop("account")
                assert answer.status_code == 404
                assert schemas.errors_of(answer.json(), schemas.ERROR) == []
            for name, answer in singles.items():
                assert schemas.errors_of(await succeeded(answer), schemas.SINGLETONS[name](version)) == [], name
            check_references(found, contest)
            check_access(found, {"contest": contest, "state": singles["state"].json()}, singles["access"].json())
            for name, objects in found.items():
                for item in objects[:2]:
                    assert await read(client, f"{root}/contests/{SLUG}/{name}/{item['id']}") == item


async def test_aliases_are_the_default_version(published: PublishedProblem, stack: AsyncExitStack) -> None:
    world = await make_world(published, stack)
    await world.enter("running")
    client = world.clients["jury"]
    for path in ("", "/", "/contests", f"/contests/{SLUG}", f"/contests/{SLUG}/submissions"):
        expected = await read(client, f"/api/2023-06{path}")
        assert await read(client, f"/api{path}") == await read(client, f"/api/v4{path}") == expected


@pytest.mark.parametrize("collection", ["submissions", "judgements", "runs"])
async def test_objects_of_submissions_are_made_and_encoded_in_threads(
    published: PublishedProblem, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch, collection: str
) -> None:
    world = await make_world(published, stack)
    await world.enter("running")
    threads: list[tuple[str, threading.Thread]] = []
    render = JSONResponse.render

    def recorded_convert(kind: CcsCollection, item: dict[str, Any], version: CcsVersion) -> dict[str, Any] | None:
        threads.append(("convert", threading.current_thread()))
        return convert(kind, item, version)

    def recorded_render(self: JSONResponse, content: Any) -> bytes:
        threads.append(("render", threading.current_thread()))
        return render(self, content)

    monkeypatch.setattr("adjudge.services.ccs.convert", recorded_convert)
    monkeypatch.setattr(JSONResponse, "render", recorded_render)
    assert await read(world.clients["jury"], f"/api/2026-01/contests/{SLUG}/{collection}")
    assert {step for step, _ in threads} == {"convert", "render"}
    assert threading.current_thread() not in {thread for _, thread in threads}


async def test_objects_are_filtered_by_ids(published: PublishedProblem, stack: AsyncExitStack) -> None:
    world = await make_world(published, stack)
    await world.enter("running")
    client, root = world.clients["jury"], f"/api/2026-01/contests/{SLUG}"

    async def ids(path: str) -> list[str]:
        return [item["id"] for item in await read(client, f"{root}/{path}")]

    assert await ids("submissions") == ["1", "2", "3"]
    assert await ids("submissions?team_id=two") == ["2"]
    assert await ids("submissions?team_id=two&problem_id=A") == []
    assert await ids("submissions?team_id=nobody") == []
    assert await ids("submissions?no_such_property=1") == ["1", "2", "3"], "other arguments are ignored"
    (judgement,) = await read(client, f"{root}/judgements?submission_id=2")
    assert judgement["judgement_type_id"] == "WA"
    assert await ids("judgements?judgement_type_id=AC&submission_id=2") == []
    runs = await read(client, f"{root}/runs?judgement_id={judgement['id']}")
    assert [(run["ordinal"], run["judgement_type_id"]) for run in runs] == [(1, "WA")]
    assert await read(client, f"{root}/runs/{runs[0]['id']}") == runs[0]
    assert await ids("clarifications?from_team_id=one") == ["3"]
    assert await ids("clarifications?from_team_id=") == ["1", "2", "4", "5"], "an empty value finds those without one"


def verdicts(objects: list[dict[str, Any]]) -> dict[str, str | None]:
    return {item["submission_id"]: item.get("judgement_type_id") for item in objects}


async def judged_types(world: ContestWorld, who: str) -> dict[str, str | None]:
    return verdicts(await read(world.clients[who], f"/api/2023-06/contests/{SLUG}/judgements"))


async def test_others_see_accepted_rejected_or_compile_error_until_the_thaw(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    world = await make_world(published, stack)
    await world.enter("running")
    for verdict in (Verdict.TLE, Verdict.CE, Verdict.RE, Verdict.SE):
        await world.judged("author", "B", verdict)
    public = {"1": "AC", "2": "RE", "4": "RE", "5": "CE", "6": "RE"}
    for who in ("visitor", "balloon", "setter"):
        assert await judged_types(world, who) == public, "a system error is pending"
    assert await judged_types(world, "other") == public | {"2": "WA"}
    jury = {"1": "AC", "2": "WA", "3": "AC", "4": "TLE", "5": "CE", "6": "RTE", "7": "JE"}
    assert await judged_types(world, "jury") == jury
    assert await judged_types(world, "author") == {
        number: jury[number] if number not in ("2", "3") else public[number] for number in jury if number != "3"
    }
    await world.store.clock.advance(4 * HOUR_MS)
    world.sent["frozen"] = await world.judged("author", "B")
    assert await judged_types(world, "visitor") == public, "nothing since the freeze"
    assert (await judged_types(world, "author"))["8"] == "AC"
    listed = await read(world.clients["visitor"], f"/api/2023-06/contests/{SLUG}/submissions")
    assert [item["id"] for item in listed] == ["1", "2", "4", "5", "6", "7", "8"], "that they exist is public"
    await world.store.clock.advance(HOUR_MS)
    await world.post("jury", ":thaw")
    assert await judged_types(world, "visitor") == {number: kind for number, kind in jury.items() if number != "3"} | {
        "8": "AC"
    }


async def test_others_see_nothing_of_how_a_submission_was_judged(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    world = await make_world(published, stack)
    await world.enter("running")
    root = f"/api/2026-01/contests/{SLUG}"
    judged = (await read(world.clients["visitor"], f"{root}/judgements"))[0]
    sent = (await read(world.clients["visitor"], f"{root}/submissions"))[0]
    assert judged["start_time"] == judged["end_time"] == sent["time"]
    assert "max_run_time" not in judged
    assert not {"language_id", "files", "account_id"} & sent.keys()
    assert await read(world.clients["visitor"], f"{root}/runs") == []
    own = (await read(world.clients["author"], f"{root}/judgements"))[0]
    assert own["max_run_time"] == 0.007
    assert {"language_id", "files", "account_id"} <= (await read(world.clients["author"], f"{root}/submissions"))[
        0
    ].keys()


@pytest.mark.parametrize(
    "changes",
    [
        {"feedback": ContestFeedback.NONE},
        {"scoreboard_visibility": ScoreboardVisibility.HIDDEN},
        {"format": ContestFormat.IOI},
        {"verify_required": True},
    ],
    ids=["no feedback", "hidden scoreboard", "scores", "unverified"],
)
async def test_verdicts_of_others_are_hidden_where_the_scoreboard_does_not_tell_them(
    published: PublishedProblem, stack: AsyncExitStack, changes: dict[str, Any]
) -> None:
    world = await make_world(published, stack, replace(SETTINGS, **changes))
    await world.enter("running")
    assert await judged_types(world, "visitor") == {}
    own = await judged_types(world, "author")
    hides_own = changes.get("feedback") is ContestFeedback.NONE or "verify_required" in changes
    assert own == ({} if hides_own else {"1": "AC"})
    jury = await judged_types(world, "jury")
    assert set(jury) == {"1", "2", "3"}
    assert (jury["2"] is None) is ("verify_required" in changes), "an unverified verdict does not count yet"


async def test_submissions_that_do_not_count_are_left_out(published: PublishedProblem, stack: AsyncExitStack) -> None:
    world = await make_world(published, stack)
    await world.enter("running")
    body = {"reason": "by mistake"}
    answer = await world.clients["jury"].post(f"/api/v1/contests/{SLUG}/jury/submissions/2:ignore", json=body)
    await succeeded(answer)
    for name in ("submissions", "judgements", "runs"):
        objects = await read(world.clients["jury"], f"/api/2026-01/contests/{SLUG}/{name}")
        assert len(objects) == 2, name


async def test_scoreboard_is_that_of_the_reader_and_of_a_group(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    world = await make_world(published, stack)
    await world.enter("frozen")
    root = f"/api/2023-06/contests/{SLUG}/scoreboard"

    async def solved(who: str) -> list[tuple[str, int, int]]:
        rows = (await read(world.clients[who], root))["rows"]
        return [(row["team_id"], row["score"]["num_solved"], row["score"]["total_time"]) for row in rows]

    assert await solved("visitor") == [("one", 1, 0), ("two", 0, 0)]
    assert await solved("jury") == [("one", 2, 240), ("two", 0, 0)]
    of_group = await read(world.clients["visitor"], f"{root}?group_id=north")
    assert [(row["rank"], row["team_id"]) for row in of_group["rows"]] == [(1, "two")]
    for group in ("secret", "nowhere"):
        answer = await world.clients["visitor"].get(f"{root}?group_id={group}")
        assert (answer.status_code, answer.json()["code"]) == (400, 400), "a hidden group is like a missing one"
    assert (await world.clients["jury"].get(f"{root}?group_id=secret")).is_success


async def test_duration_has_the_extra_time_and_late_submissions_of_others_are_left_out(
    published: PublishedProblem, stack: AsyncExitStack
) -> None:
    """Clients count every submission within the duration, so one that does not count must not be there."""
    world = await make_world(published, stack)
    clocks = [(world.people["author"], HOUR_US, 0)]
    await world.store.transact(lambda tx: participants.set_clocks(tx, world.contest_id, clocks))
    root = f"/api/2023-06/contests/{SLUG}"
    contest = await read(world.clients["visitor"], root)
    assert (contest["duration"], contest["scoreboard_freeze_duration"]) == ("6:00:00.000", "2:00:00.000")
    await world.store.clock.advance(round(6.5 * HOUR_MS))
    await world.judged("author", "A")
    await world.judged("other", "A")
    (listed,) = await read(world.clients["jury"], f"{root}/submissions")
    assert (listed["team_id"], listed["contest_time"]) == ("one", "4:30:00.000"), "the time of a team with a delay"
    await world.store.clock.advance(HOUR_MS)
    await world.judged("other", "B")
    listed = await read(world.clients["jury"], f"{root}/submissions")
    assert [item["contest_time"] for item in listed] == ["4:30:00.000", "6:30:00.000"], "after the duration it is late"
