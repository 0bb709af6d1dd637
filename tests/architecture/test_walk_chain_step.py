"""How many modules a chain step crosses, by a call trace: from the return of a node's handler to the start of the next.

A step is the path that every chain run repeats; a maintainer who changes it has to open every module that it runs
through. If this test fails, a part of the path was split off or added: join it with its neighbour, or take another part
out. Walk 2 of ``docs/explanation/code-map.md`` names these modules.

What the path uses like a library is not counted, because one need not open it to follow a step: values and rules
(``domain/``, ``models.py``), logs and counters (``observe/``, ``metrics.py``), the batcher and the database drivers. A
second limit holds for everything together.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import pytest

from adjudge.store.jobs.models import Job
from adjudge.worker.handler import HandlerResult
from adjudge.worker.handlers.node import NodeHandler
from adjudge.worker.runner import Runner
from adjudge.worker.slots import Claim
from tests.integration.chains.harness import ChainHarness, line
from tests.integration.chains.test_follow_up_claims import working
from tests.support.store_harness import StoreHarness

ROOT = Path(__file__).resolve().parents[2]
SOURCE = f"{ROOT / 'src' / 'adjudge'}/"
MODULES_MOST = 9
ALL_MODULES_MOST = 18
ENGINE = "store/engine/"
"""The database drivers are one module: they are reached through ``Database`` and ``Tx`` alone."""
LIBRARIES = ("domain/", "observe/", "concurrency/", ENGINE)
LIBRARY_MODULES = ("models.py", "metrics.py")
BESIDE = {"worker/leases.py"}
"""The lease of the node before is removed by a callback of its task, which runs beside the step."""
NODES = 12


class StepTrace:
    """Records the modules in which a function is called in a step, in every thread."""

    def __init__(self) -> None:
        self.steps: list[set[str]] = []
        self._modules: set[str] = set()
        self._is_on = False

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Called by the interpreter for every call and return."""
        if self._is_on and event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            module = frame.f_code.co_filename.removeprefix(SOURCE)
            self._modules.add(ENGINE if module.startswith(ENGINE) else module)

    def begin(self) -> None:
        self._modules = set()
        self._is_on = True

    def end(self) -> None:
        if self._is_on:
            self._is_on = False
            self.steps.append(self._modules)


@pytest.fixture
def trace() -> Iterator[StepTrace]:
    """Requested before the store, so that the threads of SQLite are traced, too."""
    found = StepTrace()
    threading.setprofile(found.note)
    sys.setprofile(found.note)
    yield found
    sys.setprofile(None)
    threading.setprofile(None)


async def test_a_chain_step_crosses_few_modules(
    trace: StepTrace, store: StoreHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, start = NodeHandler.run, Runner.start

    async def handle(self: NodeHandler, job: Job) -> HandlerResult:
        result = await run(self, job)
        trace.begin()
        return result

    def start_follow_ups(self: Runner, claims: Sequence[Claim]) -> None:
        if claims:
            trace.end()
        start(self, claims)

    monkeypatch.setattr(NodeHandler, "run", handle)
    monkeypatch.setattr(Runner, "start", start_follow_ups)
    harness = ChainHarness(store)
    async with working(harness, tmp_path, slots=2) as (handler_harness, _):
        assert await handler_harness.ends(await harness.start(line(NODES))) == "success"
    assert len(trace.steps) == NODES - 1
    crossed = set.intersection(*trace.steps)  # dispatcher, reader and lease keeper may run during some of them
    assert len(crossed) <= ALL_MODULES_MOST, sorted(crossed)
    modules = {
        name for name in crossed - BESIDE if not name.startswith(LIBRARIES) and not name.endswith(LIBRARY_MODULES)
    }
    assert {"worker/runner.py", "store/jobs/commands.py"} <= modules
    assert len(modules) <= MODULES_MOST, sorted(modules)
    code_map = (ROOT / "docs" / "explanation" / "code-map.md").read_text()
    walk = code_map[code_map.index("## Walk 2") : code_map.index("## Walk 3")]
    assert [module for module in sorted(modules) if module not in walk] == []
