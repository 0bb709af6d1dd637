"""Streams of events: nothing lost or duplicated, in any order of commits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import ROLE_PERMISSIONS, Role
from adjudge.domain.verdict import Verdict
from adjudge.services import event_feed as tails
from adjudge.services import submission_events as streams
from adjudge.services.submission_events import StreamEvent
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.store.jobs import progress
from adjudge.store.judging import events
from adjudge.store.judging.events import EventOffset
from tests.support.asgi_app import make_app
from tests.support.published_problem import OPEN_GATE, PublishedProblem, publish_problem
from tests.support.store_harness import StoreHarness


@pytest.fixture
async def published_problem(store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on each database in turn."""
    async with make_app(store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def postgres_published_problem(postgres_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on PostgreSQL."""
    async with make_app(postgres_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


@pytest.fixture
async def sqlite_published_problem(sqlite_store: StoreHarness, tmp_path: Path) -> AsyncIterator[PublishedProblem]:
    """A published problem, on SQLite."""
    async with make_app(sqlite_store, tmp_path, OPEN_GATE) as api:
        yield await publish_problem(api)


def staff(user_id: str = "somebody") -> Viewer:
    return Viewer(user_id, "judge", Role.JUDGE, ROLE_PERMISSIONS[Role.JUDGE], AuthMethod.TOKEN)


class EventReader:
    """A stream that is read as far as a test wants."""

    def __init__(self, stream: streams.Stream) -> None:
        self._stream = stream
        self._unread: list[StreamEvent] = []
        self.last_id: str | None = None

    async def _next(self) -> StreamEvent:
        while not self._unread:
            self._unread = [*await anext(self._stream)]
        return self._seen(self._unread.pop(0))

    async def until_live(self) -> list[StreamEvent]:
        """Everything that was missed."""
        missed = []
        while (event := await self._next()) is not streams.BEAT:
            missed.append(event)
        return missed

    async def next(self, name: str = "status") -> StreamEvent:
        """The next event of a name."""
        async with asyncio.timeout(120):
            while (event := await self._next()).name != name:
                pass
        return event

    def _seen(self, event: StreamEvent) -> StreamEvent:
        self.last_id = event.id or self.last_id
        return event


@asynccontextmanager
async def watching(published_problem: PublishedProblem, last_id: str | None = None) -> AsyncIterator[EventReader]:
    stream = await published_problem.api.services.events.stream_all(last_id)
    async with aclosing(stream):
        yield EventReader(stream)


def data_of(event: StreamEvent) -> tuple[str, str]:
    assert event.data is not None
    return event.data["submission_id"], event.data["to"]


async def test_a_stream_that_was_cut_resumes_without_loss_or_doubles(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        first, second, third = [await published_problem.submit(client) for _ in range(3)]
        async with watching(published_problem) as stream:
            assert await stream.until_live() == []
            await published_problem.finish(first["job_id"])
            seen = [data_of(await stream.next()) for _ in range(2)]
            assert [status for _, status in seen] == ["judging", "accepted"]
            await published_problem.claim(second["job_id"])
            assert data_of(await stream.next()) == (second["submission_id"], "judging")
            last_id = stream.last_id
        await published_problem.finish(third["job_id"], Verdict.WA)
        async with watching(published_problem, last_id) as stream:
            missed = [data_of(event) for event in await stream.until_live()]
            assert missed == [(third["submission_id"], "judging"), (third["submission_id"], "wrong_answer")]
            other = await published_problem.submit(client)
            await published_problem.finish(other["job_id"])
            assert data_of(await stream.next()) == (other["submission_id"], "judging")


async def test_a_transaction_that_commits_late_is_not_skipped(postgres_published_problem: PublishedProblem) -> None:
    """Its serial numbers are lower than those already committed: by number alone it would be lost."""
    published_problem = postgres_published_problem
    async with published_problem.user_client() as client:
        slow, quick = await published_problem.submit(client), await published_problem.submit(client)
        connection = await asyncpg.connect(published_problem.api.store.url)
        try:
            async with watching(published_problem) as stream:
                await stream.until_live()
                late = connection.transaction()
                await late.start()
                await connection.execute(
                    "UPDATE submissions SET status = 'judging', version = version + 1 WHERE id = $1",
                    slow["submission_id"],
                )
                await published_problem.finish(quick["job_id"])
                before_end = await published_problem.api.store.database.read(events.safe_offset)
                await late.commit()
                published_problem.api.services.events.feed._wakeup.set()  # the other connection sends no notification
                seen = {data_of(await stream.next()) for _ in range(3)}
        finally:
            await connection.close()
        assert seen == {
            (slow["submission_id"], "judging"),
            (quick["submission_id"], "judging"),
            (quick["submission_id"], "accepted"),
        }
        rows = await published_problem.api.store.rows(
            "SELECT xid, id, submission_id FROM submission_status_log ORDER BY xid, id"
        )
        assert before_end <= EventOffset(rows[0]["xid"], rows[0]["id"]), "nothing was behind the horizon meanwhile"
        async with watching(published_problem, str(EventOffset(rows[0]["xid"], rows[0]["id"]))) as stream:
            assert len(await stream.until_live()) == 2


async def test_one_submission_is_watched_from_its_beginning_to_its_end(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        made = await published_problem.submit(client)
        await published_problem.finish(made["job_id"])
        async with client.stream("GET", f"/api/v1/submissions/{made['submission_id']}/events") as answer:
            text = (await answer.aread()).decode()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        names = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]
        assert names == ["status", "status", "end"]
        ids = [line.removeprefix("id: ") for line in text.splitlines() if line.startswith("id: ")]
        resumed = await client.get(
            f"/api/v1/submissions/{made['submission_id']}/events", headers={"Last-Event-ID": ids[0]}
        )
        assert resumed.text.count("event: status") == 1
        wrong = await client.get("/api/v1/me/events", headers={"Last-Event-ID": "yesterday"})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "INVALID_INPUT")


async def test_stream_of_a_judged_submission_waits_for_the_verdict_above_the_horizon(
    postgres_published_problem: PublishedProblem,
) -> None:
    """A transaction that is older than the verdict is still open: its event is not read before that one ends."""
    published_problem = postgres_published_problem
    async with published_problem.user_client() as client:
        submitted = await published_problem.submit(client)
        older = await asyncpg.connect(published_problem.api.store.url)
        try:
            block = older.transaction()
            await block.start()
            await older.execute("SELECT pg_current_xact_id()")
            await published_problem.finish(submitted["job_id"])
            stream = await published_problem.api.services.events.stream_submission(
                staff(), submitted["submission_id"], None
            )
            async with aclosing(stream):
                watched = EventReader(stream)
                assert await watched.until_live() == [], "the verdict is above the horizon"
                await block.rollback()
                statuses = [data_of(await watched.next())[1] for _ in range(2)]
                end = await watched.next("end")
        finally:
            await older.close()
    assert statuses == ["judging", "accepted"]
    assert end.data == {"submission_id": submitted["submission_id"], "status": "accepted"}


async def test_stream_that_saw_the_verdict_ends_at_once_when_resumed(published_problem: PublishedProblem) -> None:
    async with published_problem.user_client() as client:
        submitted = await published_problem.submit(client)
        await published_problem.finish(submitted["job_id"])
        stream = await published_problem.api.services.events.stream_submission(
            staff(), submitted["submission_id"], None
        )
        async with aclosing(stream):
            watched = EventReader(stream)
            await watched.next("end")
        resumed = await published_problem.api.services.events.stream_submission(
            staff(), submitted["submission_id"], watched.last_id
        )
        async with aclosing(resumed):
            watched = EventReader(resumed)
            assert await watched.until_live() == []
            await watched.next("end")


async def test_everybody_hears_of_their_own_alone(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as client, published_problem.user_client() as other:
        mine = (await client.get("/api/v1/submissions")).json()
        assert mine["items"] == []
        made, theirs = await published_problem.submit(client), await published_problem.submit(other)
        row = await published_problem.api.store.row(
            "SELECT user_id FROM submissions WHERE id = :id", id=made["submission_id"]
        )
        stream = await published_problem.api.services.user_events.stream(staff(row["user_id"]), None)
        async with aclosing(stream):
            own = EventReader(stream)
            await own.until_live()
            await published_problem.finish(theirs["job_id"])
            await published_problem.finish(made["job_id"])
            assert [data_of(await own.next())[0] for _ in range(2)] == [made["submission_id"]] * 2


async def write_progress(published_problem: PublishedProblem, report: progress.ProgressReport) -> None:
    await published_problem.api.store.transact(lambda tx: progress.write(tx, [report]))


async def test_progress_is_heard_and_authors_see_what_they_may(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with published_problem.user_client() as client, published_problem.user_client("judge") as judge:
        made = await published_problem.submit(client)
        started = await published_problem.claim(made["job_id"])
        steps = [
            {"name": "1", "verdict": "AC", "mem_kb": 5_003, "shown": True},
            {"name": "2", "verdict": "WA", "mem_kb": 5_003, "shown": False},
        ]
        found: dict[str, list[tuple[str, int]]] = {}
        for who, name in ((client, "author"), (judge, "jury")):
            place = f"/api/v1/submissions/{made['submission_id']}"
            user = (await who.get(place)).json()["user_id"]
            viewer = (
                staff()
                if name == "jury"
                else Viewer(user, "", Role.CONTESTANT, ROLE_PERMISSIONS[Role.CONTESTANT], AuthMethod.TOKEN)
            )
            stream = await published_problem.api.services.events.stream_submission(viewer, made["submission_id"], None)
            async with aclosing(stream):
                watched = EventReader(stream)
                await watched.until_live()
                await write_progress(
                    published_problem, progress.ProgressReport(started.fence, "testing", len(name), 9, steps)
                )
                event = await watched.next("progress")
                assert event.data is not None
                while event.data["done"] != len(name):
                    event = await watched.next("progress")
                assert event.data is not None
                found[name] = [(case["name"], case["mem_kb"]) for case in event.data["cases"]]
        assert found == {"author": [("1", 5_120)], "jury": [("1", 5_003), ("2", 5_003)]}


async def test_slow_reader_is_disconnected_with_an_event(
    sqlite_published_problem: PublishedProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_problem = sqlite_published_problem
    monkeypatch.setattr(tails, "_QUEUE", 1)
    async with published_problem.user_client("admin") as client:
        made = [await published_problem.submit(client) for _ in range(3)]
        async with watching(published_problem) as stream, watching(published_problem) as quick:
            await stream.until_live()
            await quick.until_live()
            for item in made:
                await published_problem.claim(item["job_id"])
                await quick.next()
            assert await stream.next("reconnect") == streams.TOO_SLOW


async def test_the_reader_rests_when_nobody_watches(sqlite_published_problem: PublishedProblem) -> None:
    published_problem = sqlite_published_problem
    async with watching(published_problem) as stream:
        await stream.until_live()
        reader = published_problem.api.services.events.feed._reader  # what is tested is that it ends
    assert reader is not None
    published_problem.api.services.events.feed._wakeup.set()
    async with asyncio.timeout(120):
        await reader


def test_events_on_the_wire() -> None:
    assert streams.BEAT.text == ": alive\n\n"
    assert StreamEvent("status", {"a": "b\nc"}, "1-2").text == 'id: 1-2\nevent: status\ndata: {"a":"b\\nc"}\n\n'
    assert json.loads(StreamEvent("end", {}).text.partition("data: ")[2]) == {}


@pytest.mark.parametrize("text", ["", "1", "1-", "-1-2", "1-2-3", "a-b", "9" * 30 + "-1"])
def test_an_id_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        events.parse_event_offset(text)
