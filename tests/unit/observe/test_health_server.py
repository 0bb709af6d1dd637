"""The health server: metrics, liveness and readiness, and who may read the metrics."""

from __future__ import annotations

import asyncio

import pytest

from adjudge.observe import metrics
from adjudge.observe.health_server import HealthSources, LoopHeartbeat, serve_health
from adjudge.observe.metrics_access import LOOPBACK_ONLY, MetricsAccess

TOKEN = "a-token-of-the-scraper"


async def _ask(port: int, request: str, header: str = "Host: x") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{request} HTTP/1.1\r\n{header}\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), body


async def test_metrics_are_served() -> None:
    metrics.STALLED.inc()
    async with serve_health(0, HealthSources()) as port:
        status, body = await _ask(port, "GET /metrics")
    assert status == 200
    assert "adjudge_stalled_total" in body


async def test_process_is_live_while_loops_beat_or_pause() -> None:
    now = 0.0
    reader, dispatcher = LoopHeartbeat("reader", clock=lambda: now), LoopHeartbeat("dispatcher", clock=lambda: now)
    async with serve_health(0, HealthSources([reader, dispatcher])) as port:
        assert await _ask(port, "GET /health/live") == (200, "ok\n")
        now = 31.0
        dispatcher.beat()
        assert await _ask(port, "GET /health/live") == (503, "reader: no progress for 31 s\n")
        reader.pause()
        assert await _ask(port, "GET /health/live?verbose") == (200, "ok\n")
        assert await _ask(port, "HEAD /health/live") == (200, "")


@pytest.mark.parametrize(("request_line", "status"), [("GET /", 404), ("POST /metrics", 405), ("nonsense", 405)])
async def test_other_requests_are_rejected(request_line: str, status: int) -> None:
    async with serve_health(0, HealthSources()) as port:
        assert (await _ask(port, request_line))[0] == status


async def test_oversized_request_is_closed() -> None:
    async with serve_health(0, HealthSources()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x" * 100_000)
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        finally:
            writer.close()


@pytest.mark.parametrize(
    ("networks", "header", "status"),
    [
        ("127.0.0.0/8", "Host: x", 200),
        ("10.0.0.0/8", "Host: x", 403),
        ("none", "Host: x", 403),
        ("none", f"Authorization: Bearer {TOKEN}", 200),
        ("none", f"authorization: bearer {TOKEN}", 200),
        ("none", f"Authorization: Bearer {TOKEN}x", 403),
        ("none", f"Authorization: Basic {TOKEN}", 403),
        ("none", "Authorization: Bearer ", 403),
    ],
)
async def test_metrics_require_an_allowed_network_or_the_token(networks: str, header: str, status: int) -> None:
    access = MetricsAccess.of(networks, TOKEN)
    async with serve_health(0, HealthSources(), access=access) as port:
        answer = await _ask(port, "GET /metrics", header)
        assert (answer[0], "adjudge_" in answer[1]) == (status, status == 200)
        assert await _ask(port, "GET /health/live") == (200, "ok\n"), "probes send no token"


async def test_process_is_ready_without_obstacles() -> None:
    obstacles: list[str] = []

    async def find_obstacles() -> list[str]:
        return obstacles

    async with serve_health(0, HealthSources(find_obstacles=find_obstacles)) as port:
        assert await _ask(port, "GET /health/ready") == (200, "ok\n")
        obstacles.append("database: unavailable")
        assert await _ask(port, "GET /health/ready") == (503, "database: unavailable\n")


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False), ("", False), ("unix", False)],
)
def test_loopback_addresses(address: str, is_allowed: bool) -> None:
    assert LOOPBACK_ONLY.allows_address(address) is is_allowed


def test_without_a_token_no_token_is_accepted() -> None:
    assert not LOOPBACK_ONLY.allows_token("Bearer ")


async def test_server_listens_on_the_given_address() -> None:
    async with serve_health(0, HealthSources(), host="127.0.0.2") as port:
        _, writer = await asyncio.open_connection("127.0.0.2", port)
        writer.close()
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)
