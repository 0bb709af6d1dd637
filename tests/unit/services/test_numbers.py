"""Submissions, rejudge batches and chain runs by their numbers, over HTTP: visible to the same users as by id."""

from __future__ import annotations

import asyncio

from adjudge.domain.verdict import Verdict
from tests.support.asgi_app import AsgiApp
from tests.support.published_problem import publish_problem

ROOT = "/api/v1/submissions"
DAG = {"nodes": [{"id": "a", "type": "noop"}]}


async def test_responses_to_a_submit_and_its_repetition_have_the_same_number(
    api_on_both: AsgiApp,
) -> None:
    problem = await publish_problem(api_on_both)
    async with problem.user_client("admin") as client:
        headers = {"Idempotency-Key": "k1"}
        send = [client.post(ROOT, json=problem.submission_body(), headers=headers) for _ in range(4)]
        together = await asyncio.gather(*send)
        later = await client.post(ROOT, json=problem.submission_body(), headers=headers)
        answers = [answer.json() for answer in (*together, later)]
        assert all(answer == answers[0] for answer in answers)
        found = (await client.get(f"{ROOT}/{answers[0]['submission_id']}")).json()
        assert found["number"] == answers[0]["number"] > 0


async def test_items_of_a_batch_are_numbered_in_their_order(api_on_both: AsgiApp) -> None:
    problem = await publish_problem(api_on_both)
    async with problem.user_client("admin") as client:
        body = {"items": [problem.submission_body(source=f"// {index}") for index in range(50)]}
        made = [
            (await client.post(f"{ROOT}:batch", json=body, headers={"Idempotency-Key": "b"})).json()["items"]
            for _ in range(2)
        ]
        assert made[0] == made[1]
        numbers = [item["number"] for item in made[0]]
        assert numbers == [*range(numbers[0], numbers[0] + 50)]
        listed = (await client.get(ROOT, params={"limit": 50})).json()["items"]
        assert [item["number"] for item in listed] == numbers[::-1]


async def test_a_number_finds_a_submission_only_for_those_who_may_see_it(api_on_both: AsgiApp) -> None:
    published_problem = await publish_problem(api_on_both)
    async with (
        published_problem.user_client() as author,
        published_problem.user_client() as other,
        published_problem.user_client("judge") as judge,
        published_problem.api.client(published_problem.setter_token) as setter,
    ):
        made = await published_problem.submit(author)
        number = made["number"]
        for client in (author, judge, setter):
            for reference in (number, f"%23{number}"):
                found = await client.get(f"{ROOT}/{reference}")
                assert (found.status_code, found.json()["id"]) == (200, made["submission_id"])
        hidden, missing = await other.get(f"{ROOT}/{number}"), await other.get(f"{ROOT}/{number + 1}")
        assert hidden.status_code == missing.status_code == 404
        same = [{**answer.json(), "request_id": "", "trace_id": "", "instance": ""} for answer in (hidden, missing)]
        assert str(same[0]).replace(str(number), "N") == str(same[1]).replace(str(number + 1), "N")
        assert made["submission_id"] not in hidden.text
        for wrong in ("0", "-1", "1e3", "9" * 30):
            assert (await author.get(f"{ROOT}/{wrong}")).status_code == 404


async def test_rejudge_batches_are_found_by_number(api_on_both: AsgiApp) -> None:
    published_problem = await publish_problem(api_on_both)
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        made = await published_problem.submit(author)
        await published_problem.finish(made["job_id"], Verdict.WA, score=0)
        body = {"filter": {"problem": "sum"}, "reason": "again"}
        batch = (await judge.post("/api/v1/rejudge-batches", json=body)).json()
        found = await judge.get(f"/api/v1/rejudge-batches/{batch['number']}")
        assert (found.status_code, found.json()["id"]) == (200, batch["id"])
        assert (await judge.get(f"/api/v1/rejudge-batches/{batch['number'] + 1}")).status_code == 404
        preview = await judge.get(f"/api/v1/rejudge-batches/{batch['id']}/preview", params={"only_different": False})
        assert [item["submission_number"] for item in preview.json()["items"]] == [made["number"]]
        runs = (await judge.get(f"{ROOT}/{made['submission_id']}/judge-runs")).json()["items"]
        assert [(run["submission_number"], run["rejudge_batch_number"]) for run in runs] == [
            (made["number"], batch["number"]),
            (made["number"], None),
        ]


async def test_a_number_finds_a_run_only_for_those_who_may_see_it(api_on_both: AsgiApp) -> None:
    async with api_on_both.as_role("admin") as admin, api_on_both.as_role("setter") as setter:
        await admin.post("/api/v1/chains", json={"name": "nightly", "dag": DAG})
        first, second = [(await admin.post("/api/v1/chains/nightly:start")).json() for _ in range(2)]
        assert [first["number"], second["number"]] == [1, 2]
        found = await admin.get("/api/v1/chains/nightly/runs/2")
        assert (found.status_code, found.json()["id"], found.json()["number"]) == (200, second["run_id"], 2)
        answers = [await setter.get(f"/api/v1/chains/nightly/runs/{number}") for number in (2, 9)]
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "RUN_NOT_FOUND")] * 2
        assert second["run_id"] not in answers[0].text
        own = (await setter.post("/api/v1/chains/nightly:start")).json()
        assert (await setter.get("/api/v1/chains/nightly/runs/3")).json()["id"] == own["run_id"]
        again = (await admin.post(f"/api/v1/runs/{first['run_id']}:rerun", json={"reason": "x"})).json()
        assert again["number"] == 4
        read = (await admin.get(f"/api/v1/runs/{again['run_id']}")).json()
        assert (read["origin_run_id"], read["origin_run_number"]) == (first["run_id"], 1)
        assert (await admin.get("/api/v1/chains/nightly/runs/0")).status_code == 400
        assert (await admin.get("/api/v1/chains/unknown/runs/1")).json()["code"] == "CHAIN_NOT_FOUND"
