"""The same framework answering ready bytes as HTML, with the same server's settings; nobody is asked who they are."""

from __future__ import annotations

import asyncio
import os
import sys

import uvicorn
import uvloop
from fastapi import FastAPI, Response

from adjudge.cli.serving import listen


def constant_app(size_bytes: int) -> FastAPI:
    """One route."""
    app = FastAPI(openapi_url=None)
    body = os.urandom(size_bytes)

    @app.get("/constant")
    async def constant() -> Response:
        return Response(body, media_type="text/html")

    return app


async def main(size_bytes: int) -> None:
    """Serve until told to stop."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(constant_app(size_bytes), log_config=None, access_log=False, server_header=False)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/constant", flush=True)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
