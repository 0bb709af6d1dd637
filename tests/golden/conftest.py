"""One judge for all golden tests: agents and compiled programs are shared, as they are in real life."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.languages import Languages
from adjudge.judge.pipeline import Judge
from adjudge.sandbox import Sandbox


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def judge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Judge]:
    cache = CompileCache(tmp_path_factory.mktemp("compiled"))
    async with Sandbox(unsafe=True, slots=2) as box:
        yield Judge(box, Languages.load(), cache, worker="golden")
