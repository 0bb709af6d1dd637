"""The same framework answering a constant, on the same server with the same settings: what an answer cannot get under.

No ids, no log, no bounds, no security headers; nobody is asked who they are. The answer is as long as what stands
beside it (a cached problem, a page), and is made of ready bytes.
"""

from __future__ import annotations

import asyncio
import sys

import uvicorn
import uvloop
from fastapi import FastAPI, Response

from adjudge.cli.wiring.api_server import bind_socket

PATH = "/constant"


def constant_app(size_bytes: int, media_type: str) -> FastAPI:
    """One route."""
    app = FastAPI(openapi_url=None)
    body = b'"' + b"x" * (size_bytes - 2) + b'"'

    @app.get(PATH)
    async def constant() -> Response:
        return Response(body, media_type=media_type)

    return app


async def main(size_bytes: int, media_type: str = "application/json") -> None:
    """Serve until stopped."""
    listener = bind_socket("127.0.0.1", 0)
    app = constant_app(size_bytes, media_type)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
    print(f"constant at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1]), *sys.argv[2:3]))
