"""When a worker reads, takes over and pauses: in virtual time, by the calls that its stream and database get."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import chain, pairwise, repeat
from typing import Any, cast

import pytest

from adjudge import settings
from adjudge.cli.wiring.worker import _worker_settings
from adjudge.domain.errors import Unavailable
from adjudge.domain.states import JobStatus
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.jobs.models import Fence, FinishReport, Job, JobResult
from adjudge.stream import MemoryStream, Message, MessageBody, Stream
from adjudge.worker.finisher import Finisher, FinishOutcome
from adjudge.worker.slots import Slots
from adjudge.worker.worker import Worker
from adjudge.worker.worker_settings import WorkerOptions
from tests.simulation.virtual_time import run
from tests.support.log_capture import capture_logs


def _now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


class RecordingStream:
    """An empty stream that keeps what it was asked, and when; it can be away."""

    def __init__(self, *, failures: int = 0) -> None:
        self.reads: list[float] = []
        self.autoclaims: list[tuple[float, int, int]] = []
        self._failures = failures

    async def read(self, *, consumer: str, limit: int, wait_ms: int) -> list[Message]:
        self.reads.append(_now())
        if len(self.reads) <= self._failures:
            raise Unavailable("the stream is away")
        await asyncio.sleep(wait_ms / 1_000)
        return []

    async def autoclaim(self, *, consumer: str, idle_ms: int, limit: int) -> list[Message]:
        self.autoclaims.append((_now(), idle_ms, limit))
        return []


class AwayDatabase:
    """Cannot serve the first tries; then it takes whatever it is given."""

    def __init__(self, failures: int) -> None:
        self.tries: list[float] = []
        self._failures = failures

    async def transact(self, _: object) -> FinishReport:
        self.tries.append(_now())
        if len(self.tries) <= self._failures:
            raise Unavailable("the database is away")
        return FinishReport(())

    read = transact

    def listen(self, *_: object) -> Callable[[], None]:
        return lambda: None


def _run_worker(
    stream: object, *, seconds: float, slots: int = 8, random_unit: Callable[[], float] = lambda: 1.0, **environ: str
) -> None:
    """A worker with the settings that these variables make, for so long in virtual time."""

    async def work() -> None:
        worker = Worker(
            cast("Database", AwayDatabase(10**9)),
            JobCommands({}),
            cast("Stream", stream),
            {},
            _worker_settings(settings.load(environ=environ), "w", slots),
            random_unit=random_unit,
        )
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(seconds)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run(work())


def test_87_lost_jobs_are_looked_for_as_often_as_the_setting_says() -> None:
    stream = RecordingStream()
    _run_worker(stream, seconds=30, JOB_RECLAIM_INTERVAL_SEC="7")
    assert [time for time, _, _ in stream.autoclaims] == pytest.approx([7, 14, 21, 28], abs=0.05)


@pytest.mark.parametrize(("count", "slots", "asked"), [("3", 8, 3), ("16", 2, 2)])
def test_88_one_look_takes_over_no_more_than_the_setting_and_the_free_slots(count: str, slots: int, asked: int) -> None:
    stream = RecordingStream()
    _run_worker(stream, seconds=5, slots=slots, JOB_RECLAIM_COUNT=count)
    assert {limit for _, _, limit in stream.autoclaims} == {asked}


def test_89_messages_are_left_alone_for_the_lease_and_the_grace() -> None:
    stream = RecordingStream()
    _run_worker(stream, seconds=5, JOB_LEASE_SEC="40", JOB_RECLAIM_GRACE_SEC="6")
    assert {idle_ms for _, idle_ms, _ in stream.autoclaims} == {46_000}


def test_89_a_message_of_a_silent_worker_is_taken_over_after_the_lease_and_the_grace() -> None:
    class Taken(MemoryStream):
        at: float | None = None

        async def autoclaim(self, **asked: Any) -> list[Message]:
            messages = await super().autoclaim(**asked)
            if messages and self.at is None:
                self.at = _now()
            return messages

    stream: Taken

    async def prepare() -> None:
        nonlocal stream
        stream = Taken(now_us=lambda: round(asyncio.get_running_loop().time() * 1_000_000))
        await stream.publish([MessageBody("job", 2, "judge", None, {})])
        assert await stream.read(consumer="silent", limit=1, wait_ms=0)

    run(prepare())
    _run_worker(stream, seconds=60, JOB_LEASE_SEC="40", JOB_RECLAIM_GRACE_SEC="6", JOB_RECLAIM_INTERVAL_SEC="1")
    assert stream.at is not None
    assert 46 <= stream.at <= 48


def _gaps(times: list[float]) -> list[float]:
    return [round(later - earlier, 3) for earlier, later in pairwise(times)]


def _units() -> Iterator[float]:
    return chain([0.0, 1.0, 0.5], repeat(1.0))


def _events(lines: str) -> list[str]:
    return [json.loads(line)["event"] for line in lines.splitlines()]


def test_17_the_reader_pauses_longer_each_time_and_logs_an_outage_once() -> None:
    stream, units = RecordingStream(failures=8), _units()
    with capture_logs() as lines:
        _run_worker(stream, seconds=60, random_unit=lambda: next(units), JOB_RECLAIM_INTERVAL_SEC="1000")
    assert _gaps(stream.reads)[:8] == [0.1, 0.4, 0.6, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert _events(lines.getvalue()) == ["reader_retrying", "reader_recovered"]


def _job() -> Job:
    fields: dict[str, Any] = dict.fromkeys(Job._fields)
    return Job(**fields | {"id": "job", "kind": "judge", "status": JobStatus.RUNNING, "attempt_id": 1, "payload": {}})


def test_48_the_finisher_pauses_longer_each_time_and_logs_an_outage_once() -> None:
    database, units = AwayDatabase(failures=8), _units()

    async def write() -> object:
        finisher = Finisher(
            cast("Database", database),
            JobCommands({}),
            {},
            WorkerOptions("w", 1),
            Slots(1),
            clock=lambda: 0.0,
            random_unit=lambda: next(units),
        )
        return await finisher.finish(_job(), JobResult(Fence("job", 1, "w"), result={}))

    with capture_logs() as lines:
        assert run(write()) == FinishOutcome(), "written in the end, and not refused"
    assert _gaps(database.tries) == [0.1, 0.4, 0.6, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert _events(lines.getvalue()) == ["finish_retrying", "finish_recovered"]
