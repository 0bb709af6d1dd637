"""The page of operators that pauses judging and controls workers."""

from __future__ import annotations

from adjudge.registry import ProcessHealth, ProcessInfo
from tests.support.asgi_app import AsgiApp

ROOT = "/ops/control"


async def test_judging_is_paused_and_resumed_on_the_page(pages: AsgiApp) -> None:
    async with pages.as_role("admin") as client:
        assert "Nothing is paused." in (await client.get(ROOT)).text
        form = {"do": "pause", "scope": "language", "language": "cpp17", "reason": "a new compiler"}
        paused = await client.post(f"{ROOT}/judging", data=form)
        assert (paused.status_code, paused.headers["Location"]) == (303, f"{ROOT}?done=paused")
        shown = (await client.get(ROOT)).text
        assert "a new compiler" in shown
        assert "<code>cpp17</code>" in shown
        resumed = await client.post(f"{ROOT}/judging", data={**form, "do": "resume"})
        assert resumed.headers["Location"] == f"{ROOT}?done=resumed"
        assert "Nothing is paused." in (await client.get(ROOT)).text


async def test_refused_pause_keeps_what_was_typed(pages: AsgiApp) -> None:
    async with pages.as_role("admin") as client:
        form = {"do": "pause", "scope": "problem", "problem": "missing", "reason": "wrong tests"}
        answer = await client.post(f"{ROOT}/judging", data=form)
        assert answer.status_code == 404
        assert 'value="wrong tests"' in answer.text
        assert 'value="missing"' in answer.text
        without = await client.post(f"{ROOT}/judging", data={**form, "scope": "all", "reason": ""})
        assert without.status_code == 400
        assert "reason: required." in without.text


async def test_worker_is_paused_on_the_page(pages: AsgiApp) -> None:
    await pages.services.ops.registry.register(ProcessInfo("w1", "host", 7, "1", 2, health=ProcessHealth.READY))
    async with pages.as_role("admin") as client:
        form = {"worker": "w1", "action": "pause", "worker_reason": "maintenance"}
        answer = await client.post(f"{ROOT}/workers", data=form)
        assert answer.headers["Location"] == f"{ROOT}?done=ordered"
        assert "maintenance" in (await client.get(ROOT)).text
        wrong = await client.post(f"{ROOT}/workers", data={**form, "action": "dance"})
        assert wrong.status_code == 400


async def test_only_operators_see_the_page(pages: AsgiApp) -> None:
    async with pages.as_role("judge") as client:
        assert (await client.get(ROOT)).status_code == 403
