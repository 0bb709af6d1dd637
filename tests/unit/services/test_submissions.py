"""Submitting, reading, waiting, canceling: over the real application, on both databases where rows decide."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.domain.verdict import Verdict
from adjudge.services.problems import user_list_cache_key
from adjudge.store import Tx
from adjudge.store.judging import models as submission_models
from adjudge.store.judging import queries as submission_queries
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, SOURCE, PublishedProblem, minimal_problem, publish_problem
from tests.support.store_harness import StoreHarness

ROOT = "/api/v1/submissions"


@pytest.fixture
async def published_problem(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on SQLite."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def published_problem_on_both(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def published_problem_on_postgres(
    postgres_store: StoreHarness, tmp_path: Path
) -> AsyncIterator[PublishedProblem]:
    """A published problem, on PostgreSQL."""
    async with make_app(postgres_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


async def test_a_submission_is_accepted_judged_and_read(published_problem_on_both: PublishedProblem) -> None:
    published_problem = published_problem_on_both
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client)
        assert made["status"] == "pending"
        pending = (await client.get(f"{ROOT}/{made['submission_id']}")).json()
        assert (pending["status"], pending["language"], pending["problem"]) == ("pending", "cpp20", "sum")
        await published_problem.finish(made["job_id"])
        ended = (await client.get(f"{ROOT}/{made['submission_id']}", params={"wait": 5})).json()
        assert (ended["status"], ended["verdict"], ended["job_id"]) == ("accepted", "AC", made["job_id"])
        source = await client.get(f"{ROOT}/{made['submission_id']}/source")
        assert source.text == SOURCE
        job = await published_problem.api.store.job(made["job_id"])
        assert job["timeout_ms"] > 60_000


async def test_a_verdict_makes_its_authors_lists_anew_once_however_often_it_is_read(
    published_problem: PublishedProblem,
) -> None:
    user_id, token = await published_problem.api.user("contestant")

    async def read(made: dict[str, Any]) -> int:
        for path in ("", "/results", "/source"):
            assert (await client.get(f"{ROOT}/{made['submission_id']}{path}")).status_code == 200
        return published_problem.api.services.problems.cache.revisions.current(user_list_cache_key(user_id))

    async with published_problem.api.client(token) as client:
        first, second = await published_problem.submit(client), await published_problem.submit(client)
        assert await read(first) == 0
        await published_problem.finish(first["job_id"], Verdict.WA)
        assert [await read(first), await read(first), await read(second)] == [1, 1, 1]
        await published_problem.finish(second["job_id"])
        assert [await read(second), await read(first), await read(second)] == [2, 2, 2]


async def test_a_file_is_as_good_as_json(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        form = {"problem": "sum", "language": "cpp"}
        answer = await client.post(ROOT, data=form, files={"source": ("a.cpp", b"\xef\xbb\xbf" + SOURCE.encode())})
        assert answer.status_code == 202, answer.text
        kept = await client.get(f"{ROOT}/{answer.json()['submission_id']}/source")
        assert kept.content == SOURCE.encode()


async def test_a_large_source_is_a_blob_and_comes_back_whole(published_problem: PublishedProblem) -> None:
    text = "// é\n" * 15_000
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client, source=text)
        kept = await client.get(f"{ROOT}/{made['submission_id']}/source")
        assert kept.content == text.encode()
    assert await published_problem.api.store.rows("SELECT digest FROM source_texts") == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"language": "klingon"}, "language"),
        ({"source": " \n"}, "source"),
        ({"source": "a\0b"}, "source"),
        ({"source": "x" * 100_001}, "source"),
    ],
)
async def test_what_is_wrong_is_named(published_problem: PublishedProblem, fields: dict[str, Any], field: str) -> None:
    async with published_problem.user_client() as client:
        answer = await client.post(ROOT, json=published_problem.submission_body(**fields))
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_INPUT")
        assert answer.json()["fields"]["field"] == field
        unknown = await client.post(ROOT, json=published_problem.submission_body(problem="nowhere"))
        assert (unknown.status_code, unknown.json()["code"]) == (404, "PROBLEM_NOT_FOUND")


@pytest.mark.parametrize("body", [b"{", b'{"problem": "\xff"}', b"[" * 5_000, b'{"problem": "sum"}', b"null"])
async def test_a_broken_body_is_the_callers_fault(published_problem: PublishedProblem, body: bytes) -> None:
    async with published_problem.user_client() as client:
        answer = await client.post(ROOT, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) in {(400, "INVALID_INPUT"), (400, "MALFORMED_BODY")}


async def test_a_file_that_is_no_text_is_refused_with_its_line(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        form = {"problem": "sum", "language": "cpp"}
        answer = await client.post(ROOT, data=form, files={"source": ("a.cpp", b"a\n\xff")})
        assert "line 2" in answer.json()["detail"]


async def test_a_problem_takes_only_its_languages(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        published_problem = await publish_problem(api, minimal_problem(languages=("python3",)))
        async with published_problem.user_client() as client:
            refused = await client.post(ROOT, json=published_problem.submission_body())
            assert refused.json()["fields"]["field"] == "language"
            await published_problem.submit(client, language="python3")


async def test_the_same_key_gets_the_same_answer(published_problem_on_both: PublishedProblem) -> None:
    published_problem = published_problem_on_both
    async with published_problem.user_client() as client, published_problem.user_client() as other:
        send: dict[str, Any] = {"json": published_problem.submission_body(), "headers": {"Idempotency-Key": "k1"}}
        answers = await asyncio.gather(*(client.post(ROOT, **send) for _ in range(5)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["submission_id"] for answer in answers}) == 1
        reused = await client.post(
            ROOT, json=published_problem.submission_body(source="other"), headers={"Idempotency-Key": "k1"}
        )
        assert (reused.status_code, reused.json()["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
        theirs = await other.post(ROOT, **send)
        assert theirs.json()["submission_id"] != answers[0].json()["submission_id"]
        assert (await published_problem.api.store.row("SELECT count(*) AS n FROM submissions"))["n"] == 2
        await published_problem.api.store.clock.advance(ms=25 * 3_600_000)
        assert (await client.post(ROOT, **send)).json() != answers[0].json()


async def test_a_batch_is_all_or_nothing(published_problem_on_both: PublishedProblem) -> None:
    published_problem = published_problem_on_both
    async with published_problem.user_client("admin") as client:
        items = [published_problem.submission_body(source=f"// {number % 10}") for number in range(200)]
        made = await client.post(f"{ROOT}:batch", json={"items": items})
        assert made.status_code == 202, made.text
        assert len({item["submission_id"] for item in made.json()["items"]}) == 200
        assert (await published_problem.api.store.row("SELECT count(*) AS n FROM source_texts"))["n"] == 10
        items[3] = published_problem.submission_body(source="")
        refused = await client.post(f"{ROOT}:batch", json={"items": items})
        assert refused.json()["fields"]["field"] == "items[3].source"
        assert (await published_problem.api.store.row("SELECT count(*) AS n FROM submissions"))["n"] == 200
        too_many = await client.post(f"{ROOT}:batch", json={"items": [published_problem.submission_body()] * 1_001})
        assert too_many.status_code == 400


async def test_submits_that_come_together_are_committed_together(published_problem_on_both: PublishedProblem) -> None:
    published_problem = published_problem_on_both
    async with published_problem.user_client("admin") as client:
        made = await asyncio.gather(*(published_problem.submit(client) for _ in range(30)))
    rows = await published_problem.api.store.rows("SELECT id FROM submissions")
    assert {row["id"] for row in rows} == {item["submission_id"] for item in made}
    timestamps = await published_problem.api.store.rows("SELECT count(*) AS n FROM outbox WHERE state = 'pending'")
    assert timestamps[0]["n"] == 30


async def test_others_may_not_know_of_it(published_problem: PublishedProblem) -> None:
    async with (
        published_problem.user_client() as author,
        published_problem.user_client() as other,
        published_problem.user_client("setter") as other_user,
        published_problem.api.client(published_problem.setter_token) as setter,
        published_problem.user_client("judge") as judge,
    ):
        made = await published_problem.submit(author)
        await published_problem.finish(made["job_id"])
        place = f"{ROOT}/{made['submission_id']}"
        run = f"/api/v1/judge-runs/{made['job_id']}"
        for path in (place, f"{place}/source", f"{place}/results", f"{place}/events", f"{place}/judge-runs", run):
            for nosy in (other, other_user):
                answer = await nosy.get(path)
                assert (answer.status_code, answer.json()["code"]) == (
                    404,
                    "JUDGE_RUN_NOT_FOUND" if path is run else "SUBMISSION_NOT_FOUND",
                )
        assert (await other.post(f"{place}:cancel")).status_code == 404
        assert (await other.get(ROOT)).json()["items"] == []
        assert (await other.get(ROOT, params={"user": "somebody"})).status_code == 403
        for staff in (setter, judge):
            assert (await staff.get(f"{place}/source")).status_code == 200
            assert (await staff.get(ROOT, params={"problem": "sum"})).json()["items"][0]["id"] == made["submission_id"]


async def test_authors_see_nothing_of_secret_tests(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        made = await published_problem.submit(author)
        place = f"{ROOT}/{made['submission_id']}/results"
        assert (await author.get(place)).json()["document"] is None
        await published_problem.finish(made["job_id"])
        mine = (await author.get(place)).json()
        theirs = (await judge.get(place)).json()
        assert (mine["view"], theirs["view"]) == ("author", "jury")
        assert "the secret answer" not in str(mine)
        assert "worker" not in str(mine)
        sample, secret = mine["document"]["cases"]
        assert sample["message"] == "a sample's message"
        assert (secret["name"], secret["verdict"], secret["time_ms"]) == ("secret", "AC", 7)
        assert not {"message", "wall_ms", "exit_code", "exit_signal"} & set(secret)
        assert "the secret answer" in str(theirs)


async def test_only_the_jury_sees_exact_memory(published_problem: PublishedProblem) -> None:
    setter = published_problem.setter_token
    async with (
        published_problem.user_client() as author,
        published_problem.user_client("judge") as judge,
        published_problem.api.client(setter) as owner,
    ):
        made = await published_problem.submit(author)
        await published_problem.finish(made["job_id"], mem_kb=5_003)
        place = f"{ROOT}/{made['submission_id']}"
        for client, expected, secret in ((author, 5_120, 5_120), (judge, 5_003, 5_003), (owner, 5_003, 5_003)):
            assert (await client.get(place)).json()["mem_kb"] == expected
            (listed,) = (await client.get(ROOT, params={"problem": "sum"})).json()["items"]
            assert listed["mem_kb"] == expected
            document = (await client.get(f"{place}/results")).json()["document"]
            assert document["mem_kb"] == expected
            sample, other = document["cases"]
            assert (sample["mem_kb"], other["mem_kb"]) == (5_003, secret), "a sample is nobody's secret"
            assert ("wall_ms" in other, "exit_signal" in other) == (secret == 5_003, secret == 5_003)
            assert "wall_ms" in sample


async def test_run_that_moved_on_is_a_conflict(
    published_problem_on_postgres: PublishedProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends after it was read for canceling and before it is canceled."""
    published_problem = published_problem_on_postgres
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        made = await published_problem.submit(author)
        started = await published_problem.claim(made["job_id"])
        read = submission_queries.find_judge_run

        async def read_then_end(tx: Tx, job_id: str) -> submission_models.JudgeRunRow:
            found = await read(tx, job_id)
            monkeypatch.setattr(submission_queries, "find_judge_run", read)
            await published_problem.api.store.transact(
                lambda tx: published_problem.api.store.jobs.finish_and_claim_next(tx, [started])
            )
            return found

        monkeypatch.setattr(submission_queries, "find_judge_run", read_then_end)
        late = await judge.post(f"/api/v1/judge-runs/{made['job_id']}:cancel", json={"reason": "late"})
        assert (late.status_code, late.json()["code"]) == (409, "VERSION_CONFLICT")
        assert late.json()["fields"]["job_id"] == made["job_id"]
        audit = await published_problem.api.store.rows("SELECT action FROM audit_log")
        assert audit == [], "nothing was canceled"


async def test_a_waiter_is_woken_by_the_verdict(published_problem_on_both: PublishedProblem) -> None:
    published_problem = published_problem_on_both
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client)
        waiting = asyncio.create_task(client.get(f"{ROOT}/{made['submission_id']}", params={"wait": 60}))
        while not published_problem.api.services.events.feed.waiter_count:
            await asyncio.sleep(0)
        await published_problem.finish(made["job_id"], Verdict.WA)
        answer = await waiting
        assert answer.json()["verdict"] == "WA"


async def test_waiting_ends_by_itself(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client)
        answer = await client.get(f"{ROOT}/{made['submission_id']}", params={"wait": 0.05})
        assert answer.json()["status"] == "pending"
        assert (await client.get(f"{ROOT}/{made['submission_id']}", params={"wait": 61})).status_code == 400


async def test_canceling_and_what_cannot_be_canceled(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client)
        place = f"{ROOT}/{made['submission_id']}"
        assert (await client.post(f"{place}:cancel", json={"reason": "mine"})).json()["status"] == "canceled"
        again = await client.post(f"{place}:cancel")
        assert (again.status_code, again.json()["code"]) == (400, "INVALID_TRANSITION")
        log = (await client.get(f"{place}/log")).json()["items"]
        assert [(item["from_status"], item["to_status"]) for item in log] == [("pending", "canceled")]


async def change(client: httpx.AsyncClient, made: dict[str, Any], **fields: Any) -> tuple[int, str]:
    body = {"status": "judging", "version": 1, "reason": "by hand"} | fields
    answer = await client.post(f"{ROOT}/{made['submission_id']}:change-status", json=body)
    return answer.status_code, answer.json().get("code") or answer.json()["status"]


async def test_manual_changes_are_guarded(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        made = await published_problem.submit(author)
        assert await change(author, made) == (403, "FORBIDDEN")
        assert await change(judge, made, status="gone") == (400, "INVALID_STATUS")
        assert await change(judge, made, status="accepted", verdict="AC") == (400, "INVALID_TRANSITION")
        assert await change(judge, {"submission_id": "nothing"}) == (404, "SUBMISSION_NOT_FOUND")
        assert await change(judge, made, version=7) == (409, "VERSION_CONFLICT")
        assert await change(judge, made) == (200, "judging")
        assert await change(judge, made, status="error", version=2, verdict="SE") == (200, "error")
        audit = await published_problem.api.store.rows("SELECT action FROM audit_log")
        assert [row["action"] for row in audit] == ["change_status"] * 2


async def test_lists_go_by_key_and_by_what_is_asked(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client("admin") as client:
        made = [
            (await published_problem.submit(client, language=name))["submission_id"] for name in ("cpp", "c", "cpp")
        ]
        first = (await client.get(ROOT, params={"limit": 2})).json()
        assert [item["id"] for item in first["items"]] == made[:0:-1]
        rest = (await client.get(ROOT, params={"limit": 2, "cursor": first["next"]})).json()
        assert ([item["id"] for item in rest["items"]], rest["next"]) == (made[:1], None)
        only = (await client.get(ROOT, params={"language": "c"})).json()["items"]
        assert [item["id"] for item in only] == [made[1]]
        for nothing in ({"status": "accepted"}, {"verdict": "AC"}, {"until": "2000-01-01T00:00:00Z"}):
            assert (await client.get(ROOT, params=nothing)).json()["items"] == []
        for wrong in ({"since": "yesterday"}, {"since": "2000-01-01T00:00:00"}, {"cursor": "!"}, {"limit": 101}):
            assert (await client.get(ROOT, params=wrong)).status_code == 400


async def test_a_list_does_not_tell_a_draft_from_nothing(published_problem: PublishedProblem) -> None:
    store, draft = (
        published_problem.api.store,
        problem_models.NewProblem(new_id(), "next-round", "Next round", published_problem.setter_id),
    )
    await store.transact(lambda tx: problem_commands.insert(tx, draft))
    async with (
        published_problem.user_client() as client,
        published_problem.user_client("setter") as setter,
        published_problem.user_client("judge") as judge,
    ):
        for nosy in (client, setter):
            secret, nothing = [await nosy.get(ROOT, params={"problem": name}) for name in ("next-round", "next-sound")]
            assert (secret.status_code, secret.json()["code"]) == (404, "PROBLEM_NOT_FOUND")
            ours, theirs = secret.json(), nothing.json()
            assert str(ours | {"request_id": ""}) == str(theirs | {"request_id": ""}).replace("sound", "round")
        async with published_problem.api.client(published_problem.setter_token) as owner:
            assert (await owner.get(ROOT, params={"problem": "next-round"})).json()["items"] == []
        assert (await judge.get(ROOT, params={"problem": "next-round"})).json()["items"] == []
        made = await published_problem.submit(client)
        await store.write(
            "UPDATE problems SET published_revision_id = NULL WHERE id = :id", id=published_problem.problem_id
        )
        left = (await client.get(ROOT, params={"problem": published_problem.slug})).json()["items"]
        assert [item["id"] for item in left] == [made["submission_id"]]
        assert (await setter.get(ROOT, params={"problem": published_problem.slug})).status_code == 404


async def test_judge_runs_their_attempts_and_logs(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        made = await published_problem.submit(author)
        await published_problem.finish(made["job_id"])
        run = f"/api/v1/judge-runs/{made['job_id']}"
        read = (await author.get(run)).json()
        assert read["status"] == "succeeded"
        assert read["created_at"] <= read["updated_at"]
        assert read["updated_at"] >= read["finished_at"]
        assert (await author.get(f"{run}/attempts")).status_code == 403
        (attempt,) = (await judge.get(f"{run}/attempts")).json()["items"]
        assert (attempt["worker"], attempt["outcome"]) == ("w1", "succeeded")
        log = (await judge.get(f"{run}/log")).json()["items"]
        assert [item["to_status"] for item in log] == ["running", "succeeded"]
        late = await judge.post(f"{run}:cancel", json={"reason": "late"})
        assert (late.status_code, late.json()["code"]) == (400, "INVALID_TRANSITION")
        missing = await judge.post("/api/v1/judge-runs/none:cancel", json={})
        assert (missing.status_code, missing.json()["code"]) == (404, "JUDGE_RUN_NOT_FOUND")
        other = await published_problem.submit(author)
        gone = await judge.post(f"/api/v1/judge-runs/{other['job_id']}:cancel", json={"reason": "enough"})
        assert gone.json()["status"] == "canceled"
        assert (await author.get(f"{ROOT}/{other['submission_id']}")).json()["status"] == "canceled"


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"headers": {"Authorization": "Bearer adj_wrong"}}, 401, "UNAUTHENTICATED"),
        ({"headers": {"Authorization": "Basic abc"}}, 401, "UNAUTHENTICATED"),
        ({"headers": {"Idempotency-Key": "k" * 300}}, 400, "INVALID_INPUT"),
        ({"content": b'{"problem": "sum"'}, 400, ""),
        ({"content": b'{"problem": 7}'}, 400, "INVALID_INPUT"),
        ({"content": b""}, 400, ""),
        ({"content": b"{}"}, 400, "INVALID_INPUT"),
    ],
)
async def test_invalid_submit_requests_are_refused(
    published_problem: PublishedProblem, change: dict[str, Any], status: int, code: str
) -> None:
    one = published_problem.submission_body()
    async with published_problem.user_client() as client:
        for path, body in ((ROOT, one), (f"{ROOT}:batch", {"items": [one]})):
            answer = await client.post(path, **({"content": json.dumps(body).encode()} | change))
            assert answer.status_code == status
            assert answer.json()["code"] in ({code} if code else {"INVALID_INPUT", "MALFORMED_BODY"})
    assert (await published_problem.api.store.row("SELECT count(*) AS n FROM submissions"))["n"] == 0


async def test_in_flight_limit_says_when_to_retry(sqlite_store: StoreHarness, tmp_path: Path) -> None:
    limits: dict[str, object] = {"admission.in_flight": 2, "admission.health_gate": False}
    async with make_app(sqlite_store, tmp_path, limits) as api:
        published_problem = await publish_problem(api)
        async with published_problem.user_client() as client:
            answers = [await client.post(ROOT, json=published_problem.submission_body()) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert answers[2].headers["Retry-After"] == "1"
