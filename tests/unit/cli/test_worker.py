"""Signal handling of a worker."""

from __future__ import annotations

import asyncio
import os
import signal

from adjudge.cli.wiring.process import drain_on_signals


async def test_third_signal_ends_a_worker_that_cannot_release_its_jobs() -> None:
    asked: asyncio.Queue[None] = asyncio.Queue()
    drain_on_signals(lambda: asked.put_nowait(None))
    try:
        for _ in range(2):
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(asked.get(), 10)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "the next one is not for us to hear"
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
