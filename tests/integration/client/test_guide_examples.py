"""The examples of the client guide run as written."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from pathlib import Path

import pytest

from adjudge.store.engine.notify import CHANNEL_OUTBOX, Wakeup
from tests.support.http_server import RunningServer
from tests.support.published_problem import PublishedProblem, publish_problem

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "use-the-client.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


async def _judge_all(published_problem: PublishedProblem) -> None:
    """Judge every submission AC as soon as it is submitted."""
    wakeup = Wakeup()
    published_problem.api.store.database.listen(CHANNEL_OUTBOX, wakeup.set)
    while True:
        wakeup.clear()
        waiting = await published_problem.api.store.rows(
            "SELECT id FROM jobs WHERE kind = 'judge' AND status = 'pending'"
        )
        for job in waiting:
            await published_problem.finish(job["id"])
        await wakeup.wait(1_000)


def test_examples_of_the_guide_run(server: RunningServer) -> None:
    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(_judge_all(await publish_problem(server.api)))

    judging = server.do(begin())
    _, token = server.do(server.api.user("admin"))
    printed = []
    for example in EXAMPLES:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(
                compile(example, str(PAGE), "exec"), {"url": server.url, "token": token, "__name__": "example"}
            )  # that is what this test is for
        printed.append(said.getvalue())
    server.loop.call_soon_threadsafe(judging.cancel)
    verdict, several, many, watched, refused, chained = printed
    assert verdict == "AC 7 ms\n"
    assert several == "['main.cpp', 'one.h']\n"
    assert many == "AC AC AC\n"
    assert watched.splitlines()[-1] == "end accepted 0/0"
    assert refused.startswith("PROBLEM_NOT_FOUND")
    assert chained == "pending\n"
