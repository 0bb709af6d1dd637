"""The health server: metrics and liveness."""

from __future__ import annotations

import asyncio

import pytest

from adjudge.observe import metrics
from adjudge.observe.health_server import LoopHeartbeat, serve_health


async def _ask(port: int, request: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{request} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), body


async def test_metrics_are_served() -> None:
    metrics.STALLED.inc()
    async with serve_health(0, []) as port:
        status, body = await _ask(port, "GET /metrics")
    assert status == 200
    assert "adjudge_stalled_total" in body


async def test_process_is_live_while_loops_beat_or_pause() -> None:
    now = 0.0
    reader, dispatcher = LoopHeartbeat("reader", clock=lambda: now), LoopHeartbeat("dispatcher", clock=lambda: now)
    async with serve_health(0, [reader, dispatcher]) as port:
        assert await _ask(port, "GET /health/live") == (200, "ok\n")
        now = 31.0
        dispatcher.beat()
        assert await _ask(port, "GET /health/live") == (503, "reader: no progress for 31 s\n")
        reader.pause()
        assert await _ask(port, "GET /health/live?verbose") == (200, "ok\n")
        assert await _ask(port, "HEAD /health/live") == (200, "")


@pytest.mark.parametrize(("request_line", "status"), [("GET /", 404), ("POST /metrics", 405), ("nonsense", 405)])
async def test_other_requests_are_rejected(request_line: str, status: int) -> None:
    async with serve_health(0, []) as port:
        assert (await _ask(port, request_line))[0] == status


async def test_oversized_request_is_closed() -> None:
    async with serve_health(0, []) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 100_000)
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        finally:
            writer.close()
