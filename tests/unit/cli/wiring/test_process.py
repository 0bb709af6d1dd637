"""Garbage collector and signal handling of serving processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

from adjudge.cli.wiring.process import drain_on_signals


def test_objects_of_the_start_are_frozen() -> None:
    look = "print(gc.get_freeze_count() > len(gc.get_objects()))"
    code = f"import gc; from adjudge.cli.wiring.process import tune_gc; tune_gc(); {look}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


async def test_third_signal_ends_a_worker_that_cannot_release_its_jobs() -> None:
    drained: asyncio.Queue[None] = asyncio.Queue()
    drain_on_signals(lambda: drained.put_nowait(None))
    try:
        for _ in range(2):
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(drained.get(), 10)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "the third signal has its default effect"
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
