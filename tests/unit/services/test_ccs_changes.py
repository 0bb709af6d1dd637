"""What clients of the Contest API change: submissions, clarifications, start and thaw, on each database."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.contests.ccs.times import format_time
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.verdict import Verdict
from adjudge.store.contests import participants, queries
from tests.support.asgi_app import make_app
from tests.support.contest_app import API, HOUR_US, ContestApp, open_contest, succeeded
from tests.support.published_problem import OPEN_GATE, SOURCE, publish_problem
from tests.support.store_harness import NOON_US, StoreHarness

OLD, NEW = "/api/2023-06/contests/spring", "/api/2026-01/contests/spring"
START_US = NOON_US + HOUR_US


@pytest.fixture
async def contest(store: StoreHarness, tmp_path: Path) -> AsyncIterator[ContestApp]:
    """A contest that starts in an hour, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api, open_contest(await publish_problem(api)) as found:
        yield found


def zipped(**files: str) -> str:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return base64.b64encode(data.getvalue()).decode()


def submission(**fields: Any) -> dict[str, Any]:
    return {"problem_id": "A", "language_id": "cpp20", "files": [{"data": zipped(main_cpp=SOURCE)}]} | fields


def refused(answer: httpx.Response, status: int, text: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json()["code"] == status
    assert answer.json().keys() == {"code", "message"}
    assert text in answer.json()["message"], answer.text


async def code_of(contest: ContestApp, participant_id: str) -> str:
    database = contest.published.api.store.database
    return (await database.read(lambda tx: participants.find(tx, participant_id))).code


async def new_team(contest: ContestApp, kind: ParticipantKind = ParticipantKind.OFFICIAL) -> str:
    user_id, _ = await contest.published.api.user("contestant")
    return await code_of(contest, await contest.join(user_id, kind))


async def test_team_submits_and_reads_its_files(contest: ContestApp) -> None:
    async with contest.participant() as team, contest.participant() as other:
        refused(await team.post(f"{OLD}/submissions", json=submission()), 409, "not started")
        await contest.advance_hours(1.5)
        answer = await team.post(f"{OLD}/submissions", json=submission(language_id="cpp"))
        made = await succeeded(answer)
        assert answer.status_code == 200
        assert answer.headers["Location"] == f"{OLD}/submissions/1"
        assert made["id"] == "1"
        assert (made["problem_id"], made["language_id"], made["contest_time"]) == ("A", "cpp20", "0:30:00.000")
        assert made["time"] == format_time(START_US + HOUR_US // 2)
        assert await succeeded(await team.get(answer.headers["Location"])) == made
        href = made["files"][0]["href"]
        assert href == "contests/spring/submissions/1/files", "relative to the root of the API"
        files = await team.get(f"/api/2023-06/{href}")
        assert files.headers["Content-Type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(files.content)) as archive:
            assert {name: archive.read(name).decode() for name in archive.namelist()} == {"main.cpp": SOURCE}
        refused(await other.get(f"/api/2023-06/{href}"), 404, "submission")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"id": "77"}, "id:"),
        ({"time": "2026-01-01T00:00:00Z"}, "time:"),
        ({"contest_time": "1:00:00"}, "contest_time:"),
        ({"files": []}, "files:"),
        ({"files": [{"data": "no base64!"}]}, "files[0].data"),
        ({"files": [{"data": zipped(main_cpp=SOURCE), "mime": "text/plain"}]}, "files[0].mime"),
        ({"files": [{"data": base64.b64encode(b"no archive").decode()}]}, "files"),
        ({"files": [{}]}, "files[0].data: missing"),
        ({"problem_id": None}, "problem_id: missing"),
        ({"language_id": "klingon"}, "language"),
        ({"language_id": 7}, "language_id: expected a text"),
        ({"entry_point": "Main"}, "entry_point"),
    ],
)
async def test_invalid_submission_names_the_property(contest: ContestApp, fields: dict[str, Any], field: str) -> None:
    async with contest.participant() as team:
        await contest.advance_hours(1)
        refused(await team.post(f"{NEW}/submissions", json=submission(**fields)), 400, field)
        assert await succeeded(await team.get(f"{NEW}/submissions")) == []


async def test_only_organisers_submit_for_other_teams(contest: ContestApp) -> None:
    first, late = await new_team(contest), await new_team(contest)
    async with contest.participant() as team:
        await contest.advance_hours(1)
        refused(await team.post(f"{NEW}/submissions", json=submission(team_id=first)), 403, "team_id")
        own = (await succeeded(await team.get(f"{NEW}/account")))["team_id"]
        made = await succeeded(await team.post(f"{NEW}/submissions", json=submission(team_id=own)))
        assert made["team_id"] == own
        organiser = contest.organiser
        refused(await organiser.post(f"{NEW}/submissions", json=submission()), 400, "team_id: missing")
        refused(await organiser.post(f"{NEW}/submissions", json=submission(team_id="nobody")), 400, "team_id")
        made = await succeeded(await organiser.post(f"{NEW}/submissions", json=submission(team_id=late)))
        assert (made["team_id"], made["id"]) == (late, "2")
        refused(await organiser.put(f"{NEW}/submissions/9", json=submission(id="9")), 403, "assigns ids and times")
    await contest.advance_hours(6)
    refused(await contest.organiser.post(f"{NEW}/submissions", json=submission(team_id=late)), 409, "ended")


async def test_visitors_change_nothing(contest: ContestApp) -> None:
    await contest.advance_hours(1)
    async with contest.published.api.client() as visitor, contest.published.user_client() as outsider:
        for path, body in (("/submissions", submission()), ("/clarifications", {"text": "?"})):
            refused(await visitor.post(f"{OLD}{path}", json=body), 401, "log in")
            refused(await outsider.post(f"{OLD}{path}", json=body), 403, "")
        refused(await visitor.patch(OLD, json={"id": "spring", "start_time": None}), 401, "")
        refused(await outsider.patch(OLD, json={"id": "spring", "start_time": None}), 403, "organiser")


async def test_submission_while_practising_is_refused(contest: ContestApp) -> None:
    async with contest.participant(ParticipantKind.PRACTICE) as user:
        await contest.advance_hours(7)
        refused(await user.post(f"{OLD}/submissions", json=submission()), 409, "ended")


async def test_team_asks_and_the_jury_answers(contest: ContestApp) -> None:
    async with contest.participant() as team, contest.participant() as other:
        await contest.advance_hours(1)
        code = (await succeeded(await team.get(f"{OLD}/account")))["team_id"]
        asked = await succeeded(await team.post(f"{OLD}/clarifications", json={"text": "Why?", "problem_id": "A"}))
        assert asked == {
            "id": "1",
            "from_team_id": code,
            "problem_id": "A",
            "text": "Why?",
            "time": format_time(START_US),
            "contest_time": "0:00:00.000",
        }
        refused(await other.get(f"{OLD}/clarifications/1"), 404, "clarification")
        reply = {"text": "Because.", "reply_to_id": "1", "to_team_id": code}
        answered = await succeeded(await contest.organiser.post(f"{OLD}/clarifications", json=reply))
        assert (answered["to_team_id"], answered["reply_to_id"], answered["id"]) == (code, "1", "2")
        assert len(await succeeded(await team.get(f"{OLD}/clarifications"))) == 2
        assert await succeeded(await other.get(f"{OLD}/clarifications")) == []
        sent = await succeeded(await contest.organiser.post(f"{NEW}/clarifications", json={"text": "Lunch."}))
        assert "to_team_ids" not in sent
        assert [item["text"] for item in await succeeded(await other.get(f"{NEW}/clarifications"))] == ["Lunch."]


async def test_organiser_asks_for_a_team(contest: ContestApp) -> None:
    code = await new_team(contest)
    await contest.advance_hours(1)
    body = {"text": "Why?", "from_team_id": code}
    assert (await succeeded(await contest.organiser.post(f"{NEW}/clarifications", json=body)))["from_team_id"] == code
    async with contest.participant() as other:
        refused(await other.post(f"{NEW}/clarifications", json=body), 403, "from_team_id")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"id": "1"}, "id:"),
        ({"time": "2026-01-01T00:00:00Z"}, "time:"),
        ({"text": ""}, "text: missing"),
        ({"problem_id": "Z"}, "problem"),
        ({"reply_to_id": "9"}, "reply_to_id"),
        ({"to_team_ids": ["a", "b"]}, "to_team_ids"),
        ({"to_team_ids": "a"}, "to_team_ids: expected a list"),
        ({"to_team_ids": ["nobody"]}, "nobody"),
        ({"to_group_ids": ["nowhere"]}, "nowhere"),
    ],
)
async def test_invalid_message_names_the_property(contest: ContestApp, fields: dict[str, Any], field: str) -> None:
    await contest.advance_hours(1)
    body = {"text": "Hello."} | fields
    refused(await contest.organiser.post(f"{NEW}/clarifications", json=body), 400, field)
    assert await succeeded(await contest.organiser.get(f"{NEW}/clarifications")) == []


async def test_message_to_groups_needs_the_later_version(contest: ContestApp) -> None:
    body = {"text": "Hello.", "to_group_ids": ["north"]}
    refused(await contest.organiser.post(f"{OLD}/clarifications", json=body), 400, "2026-01")
    groups = {"groups": [{"code": "north", "name": "North"}]}
    await succeeded(await contest.organiser.put(f"{API}/spring/groups", json=groups))
    sent = await succeeded(await contest.organiser.post(f"{NEW}/clarifications", json=body))
    assert sent["to_group_ids"] == ["north"]
    assert await succeeded(await contest.organiser.get(f"{OLD}/clarifications")) == []


async def test_start_is_changed_and_the_countdown_paused(contest: ContestApp) -> None:
    async def patched(**fields: Any) -> httpx.Response:
        return await contest.organiser.patch(OLD, json={"id": "spring"} | fields)

    later = format_time(START_US + HOUR_US)
    assert (await succeeded(await patched(start_time=later)))["start_time"] == later
    paused = await succeeded(await patched(start_time=None))
    assert "start_time" not in paused
    assert paused["countdown_pause_time"] == "2:00:00.000", "what was left"
    assert (await succeeded(await patched(start_time=None, countdown_pause_time="0:05:00")))[
        "countdown_pause_time"
    ] == "0:05:00.000"
    resumed = await succeeded(await patched(start_time=later.replace("+00:00", "+00")))
    assert resumed["start_time"] == later
    assert "countdown_pause_time" not in resumed
    refused(await patched(start_time=later, countdown_pause_time="0:05:00"), 400, "countdown_pause_time")
    refused(await patched(start_time=format_time(NOON_US + 10_000_000)), 403, "30 seconds")
    refused(await patched(start_time="tomorrow"), 400, "start_time")
    refused(await patched(name="Autumn"), 400, "name:")
    refused(await patched(), 400, "start_time: missing")
    refused(await contest.organiser.patch(OLD, json={"id": "autumn", "start_time": None}), 409, "autumn")
    await contest.advance_hours(1.995)
    refused(await patched(start_time=later), 403, "within 30 seconds")
    assert (await succeeded(await contest.organiser.get(OLD)))["start_time"] == later


async def test_scoreboard_is_thawed_at_once_or_not_at_all(contest: ContestApp) -> None:
    async def thawed(at: int) -> httpx.Response:
        return await contest.organiser.patch(NEW, json={"id": "spring", "scoreboard_thaw_time": format_time(at)})

    async with contest.participant() as team:
        await contest.advance_hours(5.5)
        made = await succeeded(await team.post(f"{NEW}/submissions", json=submission()))
        assert made["contest_time"] == "4:30:00.000"
    refused(await thawed(NOON_US), 403, "not ended")
    await contest.advance_hours(1)
    refused(await thawed(NOON_US + 100 * HOUR_US), 403, "planned")
    found = await succeeded(await thawed(NOON_US))
    assert found["scoreboard_thaw_time"] == format_time(NOON_US + round(6.5 * HOUR_US))
    assert (await succeeded(await contest.organiser.get(f"{NEW}/state")))["thawed"] == found["scoreboard_thaw_time"]
    refused(await thawed(NOON_US), 403, "not frozen")


async def test_contest_is_known_by_its_slug_only(contest: ContestApp) -> None:
    database = contest.published.api.store.database
    row = await database.read(lambda tx: queries.find_contest(tx, "spring"))
    refused(await contest.organiser.get(f"/api/contests/{row.id}"), 404, "contest")
    refused(await contest.organiser.get("/api/contests/spring/webhooks"), 404, "collection")
    refused(await contest.organiser.get("/api/contests/spring/teams/nobody"), 404, "team")


async def test_rejudge_supersedes_the_judgement(contest: ContestApp) -> None:
    """2023-06 has the judgement that counts, 2026-01 also the earlier one."""
    async with contest.participant() as team, contest.published.user_client("judge") as judge:
        await contest.advance_hours(1)
        made = await succeeded(await contest.submit(team))
        await contest.published.finish(made["job_id"], Verdict.WA)
        batch = {"filter": {"problem": "sum"}, "reason": "a test was wrong"}
        batch_id = (await succeeded(await judge.post("/api/v1/rejudge-batches", json=batch)))["id"]
        runs = await succeeded(await judge.get(f"/api/v1/submissions/{made['submission_id']}/judge-runs"))
        (new_job,) = {item["id"] for item in runs["items"]} - {made["job_id"]}
        before = await succeeded(await judge.get(f"{NEW}/judgements"))
        assert [found["id"] for found in before] == [made["job_id"]], "a rejudge counts when it is applied"
        await contest.published.finish(new_job, Verdict.AC)
        await succeeded(await judge.post(f"/api/v1/rejudge-batches/{batch_id}:apply", json={}))
        types = [(found["judgement_type_id"], found["current"]) for found in await jury_sees(judge, NEW)]
        assert types == [("WA", False), ("AC", True)]
        assert [found["id"] for found in await jury_sees(judge, OLD)] == [new_job]
        assert [found["id"] for found in await succeeded(await team.get(f"{NEW}/judgements"))] == [new_job]


async def jury_sees(client: httpx.AsyncClient, root: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await succeeded(await client.get(f"{root}/judgements"))
    return found
