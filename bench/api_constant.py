"""The same framework answering a constant, on the same server with the same settings: what a read cannot get under.

No ids, no log, no bounds, no security headers; nobody is asked who they are. The answer is as long as a cached
problem's, and is made of ready bytes.
"""

from __future__ import annotations

import asyncio
import sys

import uvicorn
import uvloop
from fastapi import FastAPI, Response

from adjudge.cli.serving import listen


def constant_app(size_bytes: int) -> FastAPI:
    """One route."""
    app = FastAPI(openapi_url=None)
    body = b'"' + b"x" * (size_bytes - 2) + b'"'

    @app.get("/constant")
    async def constant() -> Response:
        return Response(body, media_type="application/json")

    return app


async def main(size_bytes: int) -> None:
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(constant_app(size_bytes), log_config=None, access_log=False, server_header=False)
    print(f"constant at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
