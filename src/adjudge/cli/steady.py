"""What a process that serves does once it is put together, so that nobody has to wait for its collector later."""

from __future__ import annotations

import gc
from typing import Final

_THRESHOLDS: Final = (10_000, 20, 20)
"""A batch of jobs or a page makes thousands of values that nothing refers to in a circle: looking after every 700 of
them, as Python does by default, finds nothing."""


def tune_gc() -> None:
    """Take what start-up has made out of the collector's sight; it stays until the end.

    A full collection goes through all modules, classes and routes: a pause of tens of milliseconds, in which no job
    starts and no request is answered. After this it goes through what the process has made since.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
