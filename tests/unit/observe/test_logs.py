"""Logs: structure, context, redaction."""

from __future__ import annotations

import asyncio
import contextvars
import io
import json
import logging
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import httpx
import pytest

from adjudge.observe import logs
from adjudge.observe.log_limits import JobLineLimiter


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logs.configure("warning")
    root.handlers, root.level = handlers, level


def _lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_json_lines_have_context_and_fields() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    with logs.context(job_id="j1", attempt_id=2):
        logs.get_logger("adjudge.worker").info("job.claimed", reason="ok")
    logs.get_logger("adjudge.worker").info("idle")
    first, second = _lines(stream)
    assert (first["event"], first["job_id"], first["attempt_id"], first["reason"]) == ("job.claimed", "j1", 2, "ok")
    assert (first["level"], first["logger"]) == ("info", "adjudge.worker")
    assert "job_id" not in second


def test_repeated_lines_of_a_job_are_limited_and_counted() -> None:
    stream, now = io.StringIO(), 0.0
    logs.configure("info", "json", stream)
    logs._output.limiter = JobLineLimiter(lines=3, window_sec=10, clock=lambda: now)
    log = logs.get_logger("adjudge.worker")
    for _ in range(50):
        log.warning("job_attempt_failed", job_id="j1")
    log.info("job_finished", job_id="j1")
    with logs.context(job_id="j2"):
        for _ in range(4):
            log.warning("job_attempt_failed")
    log.info_many("job_attempt_failed", [{"job_id": "j3"}] * 5)
    for _ in range(20):
        log.info("worker_started")
    said = [(line["event"], line.get("job_id")) for line in _lines(stream)]
    assert Counter(said) == {
        ("job_attempt_failed", "j1"): 3,
        ("job_finished", "j1"): 1,
        ("job_attempt_failed", "j2"): 3,
        ("job_attempt_failed", "j3"): 3,
        ("worker_started", None): 20,
    }
    now = 10.0
    log.info("job_attempt_failed", job_id="j1")
    *omitted, last = _lines(stream)[len(said) :]
    assert {(line["job_id"], line["omitted_event"], line["omitted_lines"]) for line in omitted} == {
        ("j1", "job_attempt_failed", 47),
        ("j2", "job_attempt_failed", 1),
        ("j3", "job_attempt_failed", 2),
    }
    assert (last["event"], last["job_id"]) == ("job_attempt_failed", "j1"), "a new window"


def test_level_changes_while_the_process_runs() -> None:
    stream = io.StringIO()
    logs.configure("warning", "json", stream)
    log = logs.get_logger("adjudge.worker")
    log.info("hidden_event")
    assert logs.set_level("debug") == "warning"
    log.debug("shown_event")
    logging.getLogger("asyncio").debug("of a library")
    assert logs.set_level("error") == "debug"
    log.warning("hidden_event")
    assert [line["event"] for line in _lines(stream)] == ["shown_event", "of a library"]


def test_info_many_uses_few_complete_writes() -> None:
    class Counting(io.StringIO):
        sizes: ClassVar[list[int]] = []

        def write(self, text: str, /) -> int:
            self.sizes.append(len(text.encode()))
            assert text.endswith("\n")
            return super().write(text)

    stream = Counting()
    logs.configure("info", "json", stream)
    each = [{"job_id": number, "secret": "x", "note": "é" * 10} for number in range(100)]
    with logs.context(request_id="r"):
        logs.get_logger("x").info_many("made", each)
    lines = _lines(stream)
    assert [line["job_id"] for line in lines] == list(range(100))
    assert {(line["request_id"], line["event"], line["secret"]) for line in lines} == {("r", "made", logs.REDACTED)}
    assert max(stream.sizes) <= select.PIPE_BUF
    assert len(stream.sizes) < 10
    logs.configure("warning", "json", stream)
    logs.get_logger("x").info_many("hidden", each)
    assert len(_lines(stream)) == 100


def test_secrets_are_redacted() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream)
    logs.get_logger("x").info("login", password="hunter2", Authorization="Bearer abc", api_token="t", user="ann")
    (line,) = _lines(stream)
    assert (line["password"], line["Authorization"], line["api_token"]) == (logs.REDACTED,) * 3
    assert line["user"] == "ann"


def test_level_filter_and_library_records() -> None:
    stream = io.StringIO()
    logs.configure("warning", "json", stream)
    logs.get_logger("x").info("hidden")
    logging.getLogger("uvicorn.error").warning("from a %s", "library")
    (line,) = _lines(stream)
    assert (line["event"], line["logger"], line["level"]) == ("from a library", "uvicorn.error", "warning")


@pytest.mark.parametrize("level", ["debug", "info"])
def test_requested_urls_are_not_logged_by_httpx(level: logs.Level) -> None:
    """A webhook's address may be all that keeps others from using it."""
    stream = io.StringIO()
    logs.configure(level, "json", stream)
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(204))) as client:
        client.post("https://example.org/hooks/s3cret?key=s3cret")
    assert "s3cret" not in stream.getvalue()


def test_tracebacks_are_logged_in_both_formats() -> None:
    for log_format in ("json", "console"):
        stream = io.StringIO()
        logs.configure("info", log_format, stream)
        try:
            raise ValueError("out of cheese")
        except ValueError:
            logs.get_logger("x").exception("failed")
        assert "out of cheese" in stream.getvalue()
        assert "Traceback" in stream.getvalue()


def test_unconfigured_logging_does_not_use_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    code = "from adjudge.observe.logs import get_logger; get_logger('x').info('a'); get_logger('x').warning('b')"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert capfd.readouterr().out == ""


def test_dropped_task_leaves_context_without_error() -> None:
    async def work() -> None:
        with logs.context(job_id="j1"):
            await asyncio.sleep(0)

    dropped = work()
    contextvars.copy_context().run(dropped.send, None)
    dropped.close()
