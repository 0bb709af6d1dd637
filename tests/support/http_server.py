"""An API server on its own port, in a thread: for tests of blocking HTTP clients and commands."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from adjudge.cli.wiring.api_server import http_config
from tests.support.asgi_app import AsgiApp, make_app
from tests.support.shared_routes import add_pages
from tests.support.store_harness import open_store

T = TypeVar("T")
_TIMEOUT_SEC = 60


@dataclass(frozen=True)
class RunningServer:
    """A running server: its URL, and its application for tests that change data without a request."""

    url: str
    api: AsgiApp
    loop: asyncio.AbstractEventLoop

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop of the server."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(_TIMEOUT_SEC)


@contextmanager
def serve(store_url: str, folder: Path, overrides: dict[str, object] | None = None) -> Iterator[RunningServer]:
    """Serve the application with its pages until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    started: list[RunningServer] = []
    ready = threading.Event()
    stop_calls: list[Callable[[], object]] = []

    async def serve() -> None:
        async with open_store(store_url) as store, make_app(store, folder, overrides) as api:
            add_pages(api.app, api.services)
            config = http_config(api.app, api.services.settings.server)
            config.timeout_graceful_shutdown = 1
            server = uvicorn.Server(config)

            def stop() -> None:
                api.app.state.streams.close()
                server.should_exit = True

            loop = asyncio.get_running_loop()
            stop_calls.append(lambda: loop.call_soon_threadsafe(stop))
            started.append(RunningServer(f"http://127.0.0.1:{listener.getsockname()[1]}", api, loop))
            ready.set()
            await server.serve([listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="api-server")
    thread.start()
    try:
        assert ready.wait(_TIMEOUT_SEC), "the server did not start"
        yield started[0]
    finally:
        for stop in stop_calls:
            stop()
        thread.join(_TIMEOUT_SEC)
        listener.close()
        assert not thread.is_alive(), "the server did not stop"
