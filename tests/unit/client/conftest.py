"""Runs every test with the blocking and the asyncio client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from adjudge.client import AsyncClient, Client, ClientRetryPolicy
from adjudge.domain.retry import RetryPolicy

Answer = Callable[[httpx.Request], httpx.Response]
Call = Callable[..., Any]
AT_ONCE = ClientRetryPolicy(RetryPolicy(max_retries=3, base_ms=0, jitter=0), longest_wait_sec=0.0)


def call_blocking(answer: Answer, operation: str, *args: Any, retry: ClientRetryPolicy = AT_ONCE, **named: Any) -> Any:
    with Client("http://judge", "adj_x", retry=retry, transport=httpx.MockTransport(answer)) as client:
        found = getattr(client, operation)(*args, **named)
        return list(found) if isinstance(found, Iterator) else found


def call_with_asyncio(
    answer: Answer, operation: str, *args: Any, retry: ClientRetryPolicy = AT_ONCE, **named: Any
) -> Any:
    async def run() -> Any:
        transport = httpx.MockTransport(answer)
        async with AsyncClient("http://judge", "adj_x", retry=retry, transport=transport) as client:
            found = getattr(client, operation)(*args, **named)
            return [item async for item in found] if hasattr(found, "__aiter__") else await found

    return asyncio.run(run())


@pytest.fixture(params=[call_blocking, call_with_asyncio], ids=["blocking", "asyncio"])
def call(request: pytest.FixtureRequest) -> Call:
    """Call ``operation`` of a server that is ``answer``."""
    asking: Call = request.param
    return asking
