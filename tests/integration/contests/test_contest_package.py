"""Contest packages: export and import on an empty installation give the same contest and the same scoreboards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.held_contests import Installation, hold_icpc, installation
from tests.support.store_harness import StoreHarness

pytestmark = pytest.mark.slow


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite"])
async def both(
    request: pytest.FixtureRequest, sqlite_store: StoreHarness, postgres_store: StoreHarness, tmp_path: Path
) -> AsyncIterator[tuple[Installation, Installation]]:
    """Two installations, on different databases."""
    stores = [sqlite_store, postgres_store]
    if request.param.startswith("postgresql"):
        stores.reverse()
    async with installation(stores[0], tmp_path / "a") as a, installation(stores[1], tmp_path / "b") as b:
        yield a, b


async def follow(target: Installation, source: Installation) -> None:
    """Let both installations have the same time."""
    await target.api.store.clock.advance((source.api.store.clock.now_us - target.api.store.clock.now_us) // 1_000)


async def test_icpc_contest_moves_with_its_scoreboards(both: tuple[Installation, Installation]) -> None:
    source, target = both
    contest = await hold_icpc(source)
    for step in ("", ":thaw", ":finalize", ":close-updates"):
        if step:
            await contest.advance(60)
            await contest.call("POST", step)
        await follow(target, source)
        data = await source.export("finals")
        assert data == await source.export("finals")
        slug = f"moved{step.replace(':', '-')}"
        seen = await target.import_contest(data, slug=slug, preview=True)
        assert [item for item in seen["findings"] if item["severity"] == "error"] == []
        done = await target.import_contest(data, slug=slug)
        assert done["items"] == seen["items"]
        before, after = await source.boards("finals"), await target.boards(slug)
        for name, body in before.items():
            assert after[name] == body, (step, name)
        assert (await target.import_contest(data, slug=slug))["is_unchanged"]
