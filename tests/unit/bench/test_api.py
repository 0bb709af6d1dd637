"""The API's benchmark: what its processes say is what the rows say."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from adjudge.store.engine.sqlite import SqliteDatabase
from adjudge.store.judging.submit_batch import resolve_problems
from bench import api
from bench.api_baseline import RawSqlite, commit_all, open_bare, recorded
from bench.api_fixture import SLUG, SOURCE, ApiFixture, LoadResult, median_result, seed_database
from bench.api_load_generator import MARK, LoadGenerator, Template, request
from bench.harness import Bench
from bench.http_baseline import constant_app


class RecordingServer:
    """A server that answers whatever is asked, and notes it."""

    def __init__(self, answer: bytes) -> None:
        self.asked: list[bytes] = []
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or 0)
                self.asked.append(head + await reader.readexactly(length))
                writer.write(self._answer)
        except asyncio.IncompleteReadError:
            writer.close()


async def _load(
    answer: bytes, asked: bytes, *, connections: int, count: int
) -> tuple[RecordingServer, dict[str, object]]:
    web = RecordingServer(answer)
    async with await asyncio.start_server(web.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await LoadGenerator().load(port, [asked.decode()] * connections, count, 10)
        server.close()
        for _ in range(3):
            await asyncio.sleep(0)  # the server's side hears that they have hung up
    return web, found


async def test_requested_number_of_distinct_requests_is_sent() -> None:
    asked = request("POST", "/x", "adj_1", b'{"source": "' + MARK + b'"}')
    web, found = await _load(b"HTTP/1.1 202 \r\ncontent-length: 2\r\n\r\nok", asked, connections=3, count=20)
    assert found["statuses"] == {"202": 20}
    assert isinstance(found["waits_ms"], list)
    assert len(found["waits_ms"]) == 20
    assert len(set(web.asked)) == 20
    assert {len(each) for each in web.asked} == {len(asked)}
    assert b"Authorization: Bearer adj_1\r\n" in web.asked[0]


async def test_unexpected_response_is_counted_and_shown() -> None:
    _, found = await _load(
        b"HTTP/1.1 429 \r\ncontent-length: 4\r\n\r\nslow", b"GET / HTTP/1.1\r\n\r\n", connections=1, count=2
    )
    assert found["statuses"] == {"429": 2}
    assert str(found["wrong"]).endswith("slow")


async def test_sse_connections_count_events() -> None:
    generator = LoadGenerator()
    web = RecordingServer(b"HTTP/1.1 200 \r\n\r\n: alive\n\nevent: status\ndata: {}\n\n")
    async with await asyncio.start_server(web.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await generator.watch(port, ["GET /me/events HTTP/1.1\r\n\r\n"] * 3) == {"open": 3}
        assert await generator.leave() == {"heard": 3, "open": 3}
        server.close()
        for _ in range(3):
            await asyncio.sleep(0)


def test_every_placeholder_becomes_a_unique_number() -> None:
    numbers = iter(range(1, 9))
    assert Template(b"a" + MARK + b"b" + MARK).written(lambda: next(numbers)) == b"a0000000001b0000000002"
    assert Template(b"plain").written(lambda: next(numbers)) == b"plain"


def test_rounds_alternate_direction_and_the_first_is_warm_up() -> None:
    order: list[str] = []

    def contender(name: str) -> LoadResult:
        order.append(name)
        return LoadResult(len(order), 1, 2)

    found = api.interleave_rounds({name: lambda name=name: contender(name) for name in ("ours", "raw")}, rounds=2)  # type: ignore[misc]  # a default binds it
    assert order == ["raw", "ours", "ours", "raw", "raw", "ours"]
    assert found["ours"].per_sec == 4.5
    assert median_result([LoadResult(1, 9, 9), LoadResult(3, 8, 8), LoadResult(2, 7, 7)]) == LoadResult(2, 8, 8)


@pytest.fixture
async def api_fixture(tmp_path: Path) -> ApiFixture:
    return await seed_database(f"sqlite:///{tmp_path}/a.db", 2)


async def test_baseline_writes_what_the_store_writes(api_fixture: ApiFixture) -> None:
    async with AsyncExitStack() as stack:
        bares, recorder = await open_bare(api_fixture.url, 2, stack)
        assert isinstance(bares[0], RawSqlite)
        work = [await recorded(recorder, api_fixture.example, at * 3, 3) for at in range(4)]
        assert [len(calls) for calls in work] == [5] * 4
        answer = await commit_all(bares, work)
        assert len(answer["waits_ms"]) == 4
    path = Path(api_fixture.url.removeprefix("sqlite:///"))
    with sqlite3.connect(path) as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("submissions", "jobs", "outbox", "source_texts")
        ]
    connection.close()
    assert counts == [12] * 4


async def test_requests_are_valid_submissions_of_existing_users(api_fixture: ApiFixture) -> None:
    (asked,) = api_fixture.submits(1)
    head, _, body = asked.partition("\r\n\r\n")
    assert json.loads(body) == {"problem": SLUG, "language": "cpp17", "source": SOURCE}
    assert api_fixture.tokens[0] in head
    assert len(json.loads(api_fixture.batches(1, 5)[0].partition("\r\n\r\n")[2])["items"]) == 5
    assert len(api_fixture.streams(2, 3)) == 5
    database = SqliteDatabase(Path(api_fixture.url.removeprefix("sqlite:///")))
    try:
        named = await database.read(lambda tx: resolve_problems(tx, [SLUG]))
    finally:
        await database.close()
    assert named[SLUG].published_revision_id == api_fixture.revision_id


async def test_constant_response_has_the_requested_length() -> None:
    transport = httpx.ASGITransport(app=constant_app(100, "application/json"))
    async with httpx.AsyncClient(transport=transport, base_url="http://constant") as client:
        answer = await client.get("/constant")
    assert len(answer.content) == 100
    assert isinstance(answer.json(), str)


def test_rows_are_compared_with_their_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = {"ours": LoadResult(700, 1, 5), "raw driver": LoadResult(1_000, 1, 4)}
    monkeypatch.setattr(api, "interleave_rounds", lambda _: ran)
    bench = Bench("api")
    monkeypatch.setattr(api.ApiTarget, "__init__", lambda *_: None)
    site = api.ApiTarget.__new__(api.ApiTarget)
    site.label, site.port = "SQLite", 1
    site.ours = ApiFixture("", "", "", ("u",), ("t",), "s")
    generator = None
    api.add_submits(bench, site, generator)  # type: ignore[arg-type]  # nobody is asked
    api.add_batches(bench, site, generator)  # type: ignore[arg-type]  # nobody is asked
    rates = [row for row in bench.rows if row.goal]
    assert [(row.goal, row.met) for row in rates] == [(">= 0.6", True), (">= 5000", False)]
