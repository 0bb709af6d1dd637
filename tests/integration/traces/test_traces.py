"""Traces of an installation, received by a real OTLP receiver."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from adjudge.domain.ids import new_id
from adjudge.store.accounts import api_tokens
from tests.integration.queue.installation import PROBLEM, Installation, import_problem, until_all_decided
from tests.integration.traces.otlp_receiver import OtlpReceiver, receive_otlp

pytest.importorskip("opentelemetry.sdk", reason="the optional dependency of traces is not installed")

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.slow
async def test_one_trace_from_the_request_to_the_webhook(sqlite_url: str, tmp_path: Path) -> None:
    installation = Installation(sqlite_url, None, tmp_path)
    source = sorted((PROBLEM / "submissions" / "accepted").glob("*.cpp"))[0].read_text()
    async with installation.opened() as database:
        person, _, _ = await import_problem(database, installation.blobs)
        secret = api_tokens.new_secret()
        token = api_tokens.NewApiToken(new_id(), person, "test", secret)
        await database.transact(lambda tx: api_tokens.insert(tx, token))
        with receive_otlp() as receiver:
            environment = {
                "ADJUDGE_TRACES_ENDPOINT": f"{receiver.url}/v1/traces",
                "ADJUDGE_TRACES_SAMPLE_RATIO": "1",
                "ADJUDGE_ADMISSION_HEALTH_GATE": "false",  # the worker may register after the first request
                "ADJUDGE_WEBHOOKS_ALLOW": "127.0.0.1",
                "NO_PROXY": "127.0.0.1",
                "OTEL_BSP_SCHEDULE_DELAY": "100",
            }
            with installation.running("up", "--port", "0", **environment):
                found = re.search(r"http://\S+", installation.said["up"])
                assert found is not None
                await _submit(found[0], secret, receiver.url, source)
                await until_all_decided(database)
                await _until(receiver, "job webhook")
                await _until(receiver, "POST /api/v1/submissions")
    (request,) = receiver.children(TRACE, CALLER).values()
    assert (request.name, request.attributes["http.response.status_code"]) == ("POST /api/v1/submissions", 202)
    (job,) = receiver.children(TRACE, request.span_id).values()
    assert (job.name, job.attributes["adjudge.job.status"]) == ("job judge", "succeeded")
    steps = receiver.children(TRACE, job.span_id)
    assert steps.keys() == {"dispatch", "claim", "attempt 1", "verdict", "job webhook"}
    assert steps["verdict"].attributes["adjudge.verdict"] == "AC"
    parts = receiver.children(TRACE, steps["attempt 1"].span_id)
    assert "compile" in parts
    assert sum(name.startswith("test ") for name in parts) == len(parts) - 1 > 1
    assert receiver.children(TRACE, steps["job webhook"].span_id).keys() == {"dispatch", "claim", "attempt 1"}
    spans = [span for span in receiver.spans if span.trace_id == TRACE]
    assert all(span.duration_ns >= 0 and not span.is_error for span in spans)


async def _submit(url: str, secret: str, receiver: str, source: str) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(base_url=f"{url}/api/v1", headers=headers, timeout=60) as client:
        hook = await client.post("/webhooks", json={"url": f"{receiver}/hook", "events": ["submission.judged"]})
        assert hook.status_code == 201, hook.text
        answer = await client.post(
            "/submissions",
            json={"problem": "multiples", "language": "cpp", "source": source},
            headers={"traceparent": f"00-{TRACE}-{CALLER}-01"},
        )
        assert answer.status_code == 202, answer.text


async def _until(receiver: OtlpReceiver, name: str) -> None:
    async with asyncio.timeout(120):
        while name not in receiver.names(TRACE):
            await asyncio.sleep(0.05)
