"""The contest list and the page of a contest: what they show to whom, and the countdown."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from adjudge.domain.timestamps import format_timestamp
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.shared_routes import add_pages
from tests.support.store_harness import NOON_US, StoreHarness

API = "/api/v1/contests"
HOUR_US = 3_600_000_000
HOUR_MS = 3_600_000
NEW = {"slug": "spring", "title": "Spring <b>", "duration_sec": 18_000, "freeze_after_sec": 14_400}


@pytest.fixture
async def published(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """The application with its pages and the problem "sum"."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        add_pages(api.app, api.services)
        yield await publish_problem(api)


async def shown(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def new_contest(organiser: httpx.AsyncClient, **fields: Any) -> None:
    """A published contest with one problem that starts in an hour."""
    body = NEW | {"starts_at": format_timestamp(NOON_US + HOUR_US)} | fields
    slug = body["slug"]
    for answer in (
        await organiser.post(API, json=body),
        await organiser.put(f"{API}/{slug}/problems", json={"problems": [{"problem": "sum"}]}),
        await organiser.post(f"{API}/{slug}:publish"),
    ):
        assert answer.is_success, answer.text


async def test_list_groups_contests_by_their_phase(published: PublishedProblem, sqlite_store: StoreHarness) -> None:
    async with published.user_client("setter") as organiser, published.api.client() as visitor:
        assert "No contests." in await shown(visitor, "/contests")
        await new_contest(organiser, slug="first", starts_at=format_timestamp(NOON_US))
        await sqlite_store.clock.advance(5 * HOUR_MS)
        await new_contest(organiser, slug="second", starts_at=format_timestamp(NOON_US + 4 * HOUR_US))
        await new_contest(organiser, slug="third", starts_at=format_timestamp(NOON_US + 6 * HOUR_US))
        await organiser.post(API, json=NEW | {"slug": "draft"})
        page = await shown(visitor, "/contests")
        groups = re.split(r"<h2>(\w+)</h2>", page)[1:]
        found = {
            name: re.findall(r'href="/contests/(\w+)"', body) for name, body in zip(*[iter(groups)] * 2, strict=True)
        }
        assert found == {"Running": ["second"], "Coming": ["third"], "Past": ["first"]}
        assert 'data-countdown="3600000"' in page
        assert "/contests/draft" in await shown(organiser, "/contests")


async def test_contest_page_shows_description_rules_times_and_escapes_text(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.api.client() as visitor:
        await new_contest(
            organiser,
            description="**Bring** <script>alert(1)</script> $x^2$",
            allowed_languages=["cpp"],
            submissions_per_minute=3,
        )
        page = await shown(visitor, "/contests/spring")
        assert "Spring &lt;b&gt;" in page
        assert "<strong>Bring</strong>" in page
        assert "alert(1)" not in page
        assert "<math" in page
        assert "At most 3 submissions per minute." in page
        assert "adds 20 minutes" in page
        assert 'data-countdown="3600000"' in page
        assert "You do not take part in this contest." in page
        chinese = await visitor.get("/contests/spring", headers={"Accept-Language": "zh"})
        assert "每分钟最多提交 3 次。" in chinese.text


async def test_header_follows_the_clock_and_pauses(published: PublishedProblem, sqlite_store: StoreHarness) -> None:
    async with published.user_client("setter") as organiser, published.api.client() as visitor:
        await new_contest(organiser)
        await organiser.post(f"{API}/spring:pause-countdown")
        header = await shown(visitor, "/contests/spring/state?tab=")
        assert "Paused" in header
        assert "1:00:00" in header
        assert "data-countdown" not in header
        await organiser.post(f"{API}/spring:resume-countdown")
        await sqlite_store.clock.advance(2 * HOUR_MS)
        header = await shown(visitor, "/contests/spring/state?tab=")
        assert "Running" in header
        assert f'data-countdown="{4 * HOUR_MS}"' in header
        await organiser.post(f"{API}/spring:pause", json={"reason": "power cut"})
        await sqlite_store.clock.advance(HOUR_MS)
        header = await shown(visitor, "/contests/spring/state?tab=")
        assert "4:00:00" in header
        assert "data-countdown" not in header
        await organiser.post(f"{API}/spring:cancel", json={})
        assert "data-live-done" in await shown(visitor, "/contests/spring/state?tab=")


async def test_hidden_contest_page_answers_like_a_missing_one(published: PublishedProblem) -> None:
    async with published.user_client("setter") as organiser, published.api.client() as visitor:
        await new_contest(organiser, visibility="private")
        hidden, missing = await visitor.get("/contests/spring"), await visitor.get("/contests/absent")
        assert hidden.status_code == missing.status_code == 404
        assert _without_ids(hidden.text).replace("spring", "absent") == _without_ids(missing.text)
        assert "spring" not in await shown(visitor, "/contests")
        assert (await organiser.get("/contests/spring")).status_code == 200


def _without_ids(text: str) -> str:
    return re.sub(r"[0-9a-f-]{32,36}", "", text)
