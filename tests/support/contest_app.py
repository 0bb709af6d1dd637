"""A contest on a server in the test's own process: made over the API, with participants written to the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from adjudge.contests.registration import add_participants
from adjudge.domain.contest import ParticipantKind
from adjudge.domain.ids import new_id
from adjudge.domain.timestamps import format_timestamp
from adjudge.store.contests import queries
from adjudge.store.contests.models import NewParticipant
from tests.support.published_problem import SOURCE, PublishedProblem
from tests.support.store_harness import NOON_US

API = "/api/v1/contests"
HOUR_US = 3_600_000_000
HOUR_MS = 3_600_000
NEW = {"slug": "spring", "title": "Spring", "duration_sec": 18_000, "freeze_after_sec": 14_400}


@dataclass
class ContestApp:
    """The published contest ``spring`` with the problem ``sum`` as A; its organiser is the setter of the problem."""

    published: PublishedProblem
    organiser: httpx.AsyncClient

    @asynccontextmanager
    async def participant(
        self, kind: ParticipantKind = ParticipantKind.OFFICIAL, **fields: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        """A client of a new user who takes part."""
        user_id, secret = await self.published.api.user("contestant")
        await self.join(user_id, kind, **fields)
        async with self.published.api.client(secret) as client:
            yield client

    async def join(self, user_id: str, kind: ParticipantKind, **fields: Any) -> str:
        """Add a participant; return its id."""
        store = self.published.api.store
        contest = await store.database.read(lambda tx: queries.find_contest(tx, "spring"))
        made = new_id()
        item = NewParticipant(made, contest.id, made[-8:], f"Team {made[-4:]}", kind, user_id=user_id, **fields)
        await store.transact(lambda tx: add_participants(tx, contest.id, [item], actor=user_id))
        return made

    async def change(self, **fields: Any) -> None:
        """Change settings."""
        await succeeded(await self.organiser.patch(f"{API}/spring", json=fields))

    async def set_problem(self, **fields: Any) -> None:
        """Replace the problem."""
        body = {"problems": [{"problem": "sum"} | fields]}
        await succeeded(await self.organiser.put(f"{API}/spring/problems", json=body))

    async def submit(self, client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
        """Submit to problem A."""
        body = {"problem": "A", "contest": "spring", "language": "cpp", "source": SOURCE} | fields
        return await client.post("/api/v1/submissions", json=body)

    async def advance_hours(self, hours: float) -> None:
        """Let time pass."""
        await self.published.api.store.clock.advance(round(hours * HOUR_MS))


async def succeeded(answer: httpx.Response) -> Any:
    """The document of a response."""
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


@asynccontextmanager
async def open_contest(published: PublishedProblem, **fields: Any) -> AsyncIterator[ContestApp]:
    """Create and publish the contest; by default it starts in an hour."""
    async with published.api.client(published.setter_token) as organiser:
        body = NEW | {"starts_at": format_timestamp(NOON_US + HOUR_US)} | fields
        await succeeded(await organiser.post(API, json=body))
        contest = ContestApp(published, organiser)
        await contest.set_problem()
        await succeeded(await organiser.post(f"{API}/spring:publish"))
        yield contest
