"""The Judge0-compatible API: requests in its form become executions, results and errors come back in its form."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.judge.execution import ExecutionOptions
from adjudge.services.http_client import PrivateHostAllowList
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.execution_models import FinishedExecution, FinishedExecutionRun
from adjudge.worker.handlers.callback import CallbackHandler
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.published_problem import OPEN_GATE
from tests.support.store_harness import StoreHarness, fence_of
from tests.support.tcp_server import tcp_server

BODY = {"source_code": "print(input())", "language_id": 71, "stdin": "1\n"}
ROOT = "/judge0/submissions"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def api_open(store: StoreHarness, tmp_path: Path) -> AsyncIterator[AsgiApp]:
    """A server without admission limits, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield api


def run(verdict: Verdict = Verdict.AC, stdout: str = "1\n", **fields: Any) -> FinishedExecutionRun:
    """The result of one run."""
    values: dict[str, Any] = {
        "time_ms": 5,
        "wall_ms": 7,
        "mem_kb": 1_024,
        "exit_code": 0,
        "exit_signal": 0,
        "limit_hit": None,
    }
    values |= {"stderr": "", "is_base64": False, "is_truncated": False, **fields}
    return FinishedExecutionRun(ordinal=values.pop("ordinal", 1), verdict=verdict, stdout=stdout, **values)


async def finish(api: AsgiApp, token: str, *runs: FinishedExecutionRun, verdict: Verdict | None = None) -> None:
    """End the execution as a worker would."""
    (row,) = await api.store.rows("SELECT job_id FROM executions WHERE id = :id", id=token)
    (job,) = (await api.store.claim(row["job_id"])).done
    outcome = FinishedExecution(verdict or runs[0].verdict, "no such header" if not runs else "", runs)
    await api.store.transact(
        lambda tx: api.store.jobs.finish_and_claim_next(tx, [JobResult(fence_of(job), typed_result=outcome)])
    )


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def archive(**files: str) -> str:
    """Files as a ZIP in base64."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name, text in files.items():
            target.writestr(name, text)
    return base64.b64encode(packed.getvalue()).decode()


async def test_submission_is_created_and_read(api_open: AsgiApp) -> None:
    async with api_open.as_role("service") as client, api_open.as_role("admin") as other:
        created = await client.post(ROOT, json=BODY)
        assert (created.status_code, list(created.json())) == (201, ["token"])
        token = created.json()["token"]
        waiting = (await client.get(f"{ROOT}/{token}")).json()
        assert waiting["status"] == {"id": 1, "description": "In Queue"}
        await finish(api_open, token, run())
        found = await client.get(f"{ROOT}/{token}")
        assert found.json() == {
            "stdout": "1\n",
            "time": "0.005",
            "memory": 1_024,
            "stderr": None,
            "token": token,
            "compile_output": None,
            "message": None,
            "status": {"id": 3, "description": "Accepted"},
        }
        hidden, missing = await other.get(f"{ROOT}/{token}"), await other.get(f"{ROOT}/{'0' * 36}")
        assert hidden.status_code == missing.status_code == 404
        assert hidden.json().keys() == missing.json().keys() == {"error"}


async def test_all_fields_are_shown_on_request(api_open: AsgiApp) -> None:
    async with api_open.as_role("service") as client:
        given = {**BODY, "expected_output": "1", "cpu_time_limit": "1.5", "command_line_arguments": "a b"}
        token = (await client.post(ROOT, json=given)).json()["token"]
        await finish(api_open, token, run())
        found = (await client.get(f"{ROOT}/{token}", params={"fields": "*"})).json()
        assert (found["source_code"], found["stdin"], found["cpu_time_limit"]) == ("print(input())", "1\n", 1.5)
        assert (found["language"], found["wall_time"]) == ({"id": 71, "name": "Python 3"}, "0.007")
        assert found["created_at"].endswith("Z")
        unknown = await client.get(f"{ROOT}/{token}", params={"fields": "stdout,colour"})
        assert (unknown.status_code, unknown.json()) == (400, {"error": "invalid fields: [colour]"})


@pytest.mark.parametrize(
    ("result", "status", "message"),
    [
        (run(Verdict.TLE, limit_hit="cpu"), 5, "Time limit exceeded"),
        (run(Verdict.TLE, limit_hit="wall"), 5, "Time limit exceeded (wall clock)"),
        (run(Verdict.RE, exit_code=1), 11, "Exited with error status 1"),
        (run(Verdict.RE, exit_signal=11), 7, "Caught fatal signal 11"),
        (run(Verdict.RE, exit_signal=25), 8, "Caught fatal signal 25"),
        (run(Verdict.RE, exit_signal=8), 9, "Caught fatal signal 8"),
        (run(Verdict.RE, exit_signal=6), 10, "Caught fatal signal 6"),
        (run(Verdict.RE, exit_signal=9), 12, "Caught fatal signal 9"),
        (run(Verdict.MLE), 11, "Memory limit exceeded"),
        (run(Verdict.OLE), 8, "File size limit exceeded"),
        (run(Verdict.AC, "2\n"), 4, None),
        (run(Verdict.AC, "1  \n\n"), 3, None),
    ],
)
async def test_result_has_status_and_message_of_judge0(
    api: AsgiApp, result: FinishedExecutionRun, status: int, message: str | None
) -> None:
    async with api.as_role("service") as client:
        token = (await client.post(ROOT, json={**BODY, "expected_output": "1\n"})).json()["token"]
        await finish(api, token, result)
        found = (await client.get(f"{ROOT}/{token}")).json()
        assert (found["status"]["id"], found["message"]) == (status, message)


async def test_compile_error_has_only_the_compiler_output(api: AsgiApp) -> None:
    async with api.as_role("service") as client:
        token = (await client.post(ROOT, json=BODY)).json()["token"]
        await finish(api, token, verdict=Verdict.CE)
        found = (await client.get(f"{ROOT}/{token}")).json()
        assert (found["status"]["id"], found["compile_output"]) == (6, "no such header")
        assert (found["stdout"], found["time"], found["memory"]) == (None, None, None)


async def test_several_runs_are_averaged_and_the_first_failure_decides(api: AsgiApp) -> None:
    async with api.as_role("service") as client:
        token = (await client.post(ROOT, json={**BODY, "number_of_runs": 3})).json()["token"]
        runs = [run(ordinal=1), run(Verdict.RE, ordinal=2, exit_code=3, time_ms=8), run(ordinal=3, time_ms=11)]
        await finish(api, token, *runs, verdict=Verdict.RE)
        found = (await client.get(f"{ROOT}/{token}")).json()
        assert (found["status"]["id"], found["time"]) == (11, "0.008")


async def test_base64_is_read_and_written(api: AsgiApp) -> None:
    async with api.as_role("service") as client:
        text = "x" * 100
        body = {"source_code": encoded("print('é')") + "\n", "language_id": "71", "stdin": encoded(text)}
        token = (await client.post(ROOT, json=body, params={"base64_encoded": "true"})).json()["token"]
        (source,) = await api.store.rows("SELECT source FROM executions")
        assert source["source"] == "print('é')"
        await finish(api, token, run(stdout=base64.b64encode(b"\xff").decode(), is_base64=True))
        plain = await client.get(f"{ROOT}/{token}")
        assert plain.status_code == 400
        assert "use base64_encoded=true" in plain.json()["error"]
        query = {"base64_encoded": "true", "fields": "stdout,stdin"}
        found = (await client.get(f"{ROOT}/{token}", params=query)).json()
        assert found["stdout"] == "/w==\n"
        assert [len(line) for line in found["stdin"].split("\n")] == [60, 60, 16, 0]


@pytest.mark.parametrize(
    ("fields", "name", "message"),
    [
        ({"source_code": ""}, "source_code", "can't be blank"),
        ({"language_id": None}, "language_id", "can't be blank"),
        ({"language_id": 9_999}, "language_id", "language with id 9999 doesn't exist"),
        ({"language_id": 89}, "language_id", "multi-file"),
        ({"cpu_time_limit": 1_000}, "cpu_time_limit", "less than or equal to 10"),
        ({"wall_time_limit": 0}, "wall_time_limit", "greater than or equal to 1"),
        ({"memory_limit": "much"}, "memory_limit", "is not a number"),
        ({"number_of_runs": 1.5}, "number_of_runs", "must be an integer"),
        ({"enable_network": True}, "enable_network", "cannot be enabled"),
        ({"redirect_stderr_to_stdout": "maybe"}, "redirect_stderr_to_stdout", "true or false"),
        ({"compiler_options": "-O3"}, "compiler_options", "Python 3"),
        ({"command_line_arguments": "'a"}, "command_line_arguments", "split"),
        ({"command_line_arguments": "a" * 600}, "command_line_arguments", "too long"),
        ({"additional_files": "!"}, "additional_files", "ZIP archive in base64"),
        ({"callback_url": "ftp://example.org/"}, "callback_url", "https://"),
        ({"stdin": 3}, "stdin", "must be a string"),
        ({"language_id": "\ud800"}, "language_id", "doesn't exist"),
        ({"cpu_time_limit": 10**400}, "cpu_time_limit", "is not a number"),
        ({"stdin": "a\0"}, "stdin", "NUL"),
    ],
)
async def test_error_names_the_field(api: AsgiApp, fields: dict[str, Any], name: str, message: str) -> None:
    async with api.as_role("service") as client:
        answer = await client.post(ROOT, content=json.dumps(BODY | fields), headers=JSON)
        assert (answer.status_code, list(answer.json())) == (422, [name])
        assert message in answer.json()[name][0]
        assert await api.store.rows("SELECT id FROM executions") == []


async def test_options_reach_the_worker(api: AsgiApp) -> None:
    async with api.as_role("service") as client:
        body = {
            **BODY,
            "language_id": 52,
            "compiler_options": "-O3 -DX='a b' $HOME",
            "command_line_arguments": "one; two",
            "redirect_stderr_to_stdout": True,
            "additional_files": archive(**{"data/words.txt": "abc"}),
            "stack_limit": 1_000,
            "max_file_size": 10,
        }
        answer = await client.post(ROOT, json=body)
        assert answer.status_code == 201, answer.text
        (row,) = await api.store.rows("SELECT options, limits FROM executions")
        options = ExecutionOptions.decode(json.loads(row["options"]))
        assert options.compiler_flags == ("-O3", "-DX=a b", "HOME")
        assert (options.args, options.merges_stderr) == (("one", "two"), True)
        assert [(file.name, file.data, file.is_support) for file in options.files] == [("data/words.txt", b"abc", True)]
        limits = json.loads(row["limits"])
        assert (limits["stack_bytes"], limits["file_bytes"]) == (1_024_000, 10_240)


async def test_batch_has_an_entry_for_each_submission(api_open: AsgiApp) -> None:
    async with api_open.as_role("service") as client:
        wrong = {**BODY, "language_id": 1}
        created = await client.post(f"{ROOT}/batch", json={"submissions": [BODY, wrong, BODY]})
        assert created.status_code == 201
        first, refused, last = created.json()
        assert refused == {"language_id": ["language with id 1 doesn't exist"]}
        await finish(api_open, last["token"], run())
        tokens = f"{last['token']},{'0' * 36},{first['token']}"
        found = (await client.get(f"{ROOT}/batch", params={"tokens": tokens})).json()["submissions"]
        assert [item and item["status"]["id"] for item in found] == [3, None, 1]
        by_header = await client.get(f"{ROOT}/batch", headers={"tokens": tokens})
        assert by_header.json()["submissions"] == found
        nothing = await client.post(f"{ROOT}/batch", json={"submissions": [wrong]})
        assert (nothing.status_code, len(nothing.json())) == (422, 1)
        many = await client.post(f"{ROOT}/batch", json={"submissions": [BODY] * 21})
        assert (many.status_code, many.json()) == (
            400,
            {"error": "number of submissions in a batch should be less than or equal to 20"},
        )
        listed = (await client.get(ROOT, params={"per_page": 1})).json()
        assert listed["meta"] == {
            "current_page": 1,
            "next_page": 2,
            "prev_page": None,
            "total_pages": 2,
            "total_count": 2,
        }
        assert listed["submissions"][0]["token"] == last["token"]


async def test_wait_responds_with_the_result(api_open: AsgiApp) -> None:
    async with api_open.as_role("service") as client:
        waiting = asyncio.create_task(client.post(ROOT, json=BODY, params={"wait": "true"}))
        while not api_open.services.events.feed.waiter_count:
            await asyncio.sleep(0)
        (row,) = await api_open.store.rows("SELECT id FROM executions")
        await finish(api_open, row["id"], run())
        answer = await waiting
        assert (answer.status_code, answer.json()["status"]["id"]) == (201, 3)


async def test_token_in_the_header_of_judge0_authenticates(api: AsgiApp) -> None:
    _, secret = await api.user("service")
    async with api.client(None) as client:
        assert (await client.get("/judge0/languages")).status_code == 401
        accepted = await client.get("/judge0/languages", headers={"X-Auth-Token": secret})
        assert {item["id"]: item["name"] for item in accepted.json()}[71] == "Python 3"
        wrong = await client.get("/judge0/languages", headers={"X-Auth-Token": "adj_wrong"})
        assert wrong.status_code == 401


async def test_information_has_what_clients_read(api: AsgiApp) -> None:
    async with api.as_role("judge") as client:
        assert (await client.get("/judge0/about")).json()["version"] == "1.13.1"
        assert (await client.get("/judge0/version")).text == "1.13.1"
        languages = {item["id"] for item in (await client.get("/judge0/languages")).json()}
        assert {46, 50, 52, 54, 62, 63, 71, 72, 73, 103, 105, 107, 108, 113} <= languages
        detail = (await client.get("/judge0/languages/52")).json()
        assert (detail["source_file"], "%s" in detail["compile_cmd"]) == ("main.cpp", True)
        assert (await client.get("/judge0/languages/83")).status_code == 404
        statuses = (await client.get("/judge0/statuses")).json()
        assert [item["id"] for item in statuses] == list(range(1, 15))
        config = (await client.get("/judge0/config_info")).json()
        assert (config["max_cpu_time_limit"], config["memory_limit"], config["enable_network"]) == (
            10.0,
            128_000,
            False,
        )
        (queue,) = (await client.get("/judge0/workers")).json()
        assert queue.keys() == {"queue", "size", "available", "idle", "working", "paused", "failed"}
        refused = await client.delete(f"{ROOT}/{'0' * 36}")
        assert (refused.status_code, refused.json()) == (400, {"error": "delete not allowed"})


@pytest.mark.parametrize("status", [204, 500])
async def test_callback_gets_the_result(api_open: AsgiApp, status: int) -> None:
    received: list[tuple[str, dict[str, Any]]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(line for line in head.lower().splitlines() if line.startswith("content-length:"))
        body = await reader.readexactly(int(length.partition(":")[2]))
        received.append((head.partition(" ")[0], json.loads(body)))
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    api = api_open
    async with tcp_server(serve) as port, api.as_role("service") as client:
        url = f"http://127.0.0.1:{port}/done"
        token = (await client.post(ROOT, json={**BODY, "callback_url": url})).json()["token"]
        await finish(api, token, run())
        (row,) = await api.store.rows("SELECT id FROM jobs WHERE kind = 'callback'")
        (job,) = (await api.store.claim(row["id"])).done
        handler = CallbackHandler(api.store.database, api.services.languages, PrivateHostAllowList.parse("127.0.0.0/8"))
        if status == 204:
            assert (await handler.run(job)).result == {"response_status": 204}
        else:
            with pytest.raises(Exception, match="HTTP 500 from receiver"):
                await handler.run(job)
    assert received == [("PUT", received[0][1])]
    assert (received[0][1]["token"], received[0][1]["stdout"]) == (token, "MQo=\n")
    outside = await CallbackHandler(api.store.database, api.services.languages, PrivateHostAllowList()).run(job)
    assert outside.error_code == "INVALID_INPUT"
