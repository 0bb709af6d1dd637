"""How many modules accepting a submission crosses, by a call trace.

A maintainer who follows a request has to open every module that it runs through; above 18 nobody keeps the path in
mind. If this test fails, a step of the path was split off or added: join it with its neighbour, or take another step
out. Walk 1 of ``docs/explanation/code-map.md`` names these modules.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import httpx
import pytest

from tests.support.asgi_app import make_app
from tests.support.published_problem import PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness

ROOT = Path(__file__).resolve().parents[2]
SOURCE = f"{ROOT / 'src' / 'adjudge'}/"
MODULES_MOST = 18
ENGINE = "store/engine/"
"""The database drivers count as one module: they are reached through ``Database`` and ``Tx`` alone."""


class CallTrace:
    """Records the modules in which a function is called, in every thread that was started after it."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.is_on = False

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Called by the interpreter for every call and return."""
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            module = frame.f_code.co_filename.removeprefix(SOURCE)
            self.modules.add(ENGINE if module.startswith(ENGINE) else module)


@pytest.fixture
def trace() -> Iterator[CallTrace]:
    """Requested before the store, so that the threads of SQLite are traced, too."""
    found = CallTrace()
    threading.setprofile(found.note)
    sys.setprofile(found.note)
    yield found
    sys.setprofile(None)
    threading.setprofile(None)


@pytest.mark.parametrize("has_key", [False, True], ids=["without_key", "with_key"])
async def test_accepting_a_submission_crosses_few_modules(
    trace: CallTrace, store: StoreHarness, tmp_path: Path, *, has_key: bool
) -> None:
    async with make_app(store, tmp_path) as api:
        problem = await publish_problem(api)
        async with problem.user_client() as client:
            await problem.submit(client)  # fills the caches
            await api.services.credentials.close()  # waits until the use of the token is recorded
            traced = [await _trace_request(trace, client, problem, f"key-{n}" if has_key else None) for n in range(5)]
    modules = min(traced, key=len)  # a periodic sample of the load may run during one of them
    assert {"api/middleware.py", "store/judging/commands.py"} <= modules, "from the request to its transaction"
    assert len(modules) <= MODULES_MOST, sorted(modules)
    code_map = (ROOT / "docs" / "explanation" / "code-map.md").read_text()
    walk = code_map[code_map.index("## Walk 1") : code_map.index("## Walk 2")]
    assert [module for module in sorted(modules) if module not in walk] == []


async def _trace_request(
    trace: CallTrace, client: httpx.AsyncClient, problem: PublishedProblem, key: str | None
) -> set[str]:
    trace.modules = set()
    trace.is_on = True
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await client.post("/api/v1/submissions", json=problem.submission_body(), headers=headers)
    trace.is_on = False
    assert answer.status_code == 202
    return trace.modules
