"""Executes steps over HTTP; the only module that uses httpx requests and errors."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import httpx

from adjudge.client.errors import UnreachableError
from adjudge.client.sans_io import Delay, Emit, HttpRequest, HttpResponse, OpenStream, ReadLine, Send, Step

E = TypeVar("E")
_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class SyncTransport:
    """Executes steps, with at most one open stream."""

    def __init__(self, http: httpx.Client, timeout_sec: float) -> None:
        self._http = http
        self._timeout_sec = timeout_sec
        self._open = ExitStack()
        self._lines: Iterator[str] = iter(())

    def __enter__(self) -> SyncTransport:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def take(self, step: Step) -> Any:
        """Execute a step and return its result."""
        if isinstance(step, Delay):
            time.sleep(step.seconds)
            return None
        with _map_errors():
            if isinstance(step, ReadLine):
                return next(self._lines, None)
            if isinstance(step, Send):
                return _answer(self._http.request(**_arguments(step.request, self._timeout_sec)))
            return self._listen(step)

    def _listen(self, step: OpenStream) -> HttpResponse:
        self._open.close()
        arguments = _arguments(step.request, self._timeout_sec, silence_sec=step.silence_sec)
        response = self._open.enter_context(self._http.stream(**arguments))
        if response.status_code != httpx.codes.OK:
            response.read()
            return _answer(response)
        self._lines = response.iter_lines()
        return HttpResponse(response.status_code, _lowered(response), b"")


class AsyncTransport:
    """The same for asyncio."""

    def __init__(self, http: httpx.AsyncClient, timeout_sec: float) -> None:
        self._http = http
        self._timeout_sec = timeout_sec
        self._open = AsyncExitStack()
        self._lines: AsyncIterator[str] | None = None

    async def __aenter__(self) -> AsyncTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def take(self, step: Step) -> Any:
        """Execute a step and return its result."""
        if isinstance(step, Delay):
            await asyncio.sleep(step.seconds)
            return None
        with _map_errors():
            if isinstance(step, ReadLine):
                return await anext(self._lines, None) if self._lines else None
            if isinstance(step, Send):
                return _answer(await self._http.request(**_arguments(step.request, self._timeout_sec)))
            return await self._listen(step)

    async def _listen(self, step: OpenStream) -> HttpResponse:
        await self._open.aclose()
        arguments = _arguments(step.request, self._timeout_sec, silence_sec=step.silence_sec)
        response = await self._open.enter_async_context(self._http.stream(**arguments))
        if response.status_code != httpx.codes.OK:
            await response.aread()
            return _answer(response)
        self._lines = response.aiter_lines()
        return HttpResponse(response.status_code, _lowered(response), b"")


async def advance(
    line: AsyncTransport, step: Step, program: Generator[Step | Emit[E], Any, Any]
) -> Callable[[], Step | Emit[E]]:
    """Execute a step; return the call that continues the program."""
    try:
        return partial(program.send, await line.take(step))
    except UnreachableError as error:
        return partial(program.throw, error)


def _arguments(request: HttpRequest, timeout_sec: float, *, silence_sec: float | None = None) -> dict[str, Any]:
    """Arguments of an httpx request; a stream has its own read timeout."""
    read_sec = timeout_sec + request.extra_timeout_sec if silence_sec is None else silence_sec
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.query),
        "json": request.json,
        "content": request.content,
        "headers": dict(request.headers),
        "timeout": httpx.Timeout(timeout_sec, read=read_sec, write=timeout_sec + request.extra_timeout_sec),
    }


def _answer(response: httpx.Response) -> HttpResponse:
    return HttpResponse(response.status_code, _lowered(response), response.content)


def _lowered(response: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


@contextmanager
def _map_errors() -> Iterator[None]:
    """Map transport errors; ``was_sent`` tells whether the server may have processed the request."""
    try:
        yield
    except httpx.TransportError as error:
        what = str(error) or type(error).__name__
        raise UnreachableError(f"No response: {what}", was_sent=not isinstance(error, _NEVER_SENT)) from error


class SharedTransport(httpx.AsyncHTTPTransport):
    """Connections that several ``AsyncClient`` objects share, for a process that acts for many users."""

    def __init__(self, connections: int) -> None:
        super().__init__(limits=httpx.Limits(max_connections=connections))
        self.statuses: Counter[int] = Counter()
        """Number of responses by HTTP status, those to requests that were retried included."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        self.statuses[response.status_code] += 1
        return response
