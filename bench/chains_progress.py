"""Shared by the processes of the chain benchmark: DAG shapes and the commands to the process that starts runs.

The standard library alone, because peers' processes run in environments of their own. Marks go to the same board as
those of the queue benchmark, a run where that has a job: ``committed`` is when somebody asked for the run,
``started`` when the code of its first node ran, ``done`` when the end of its last node was committed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from bench.queue_progress import SharedProgress, send_line

LINE, FAN, LATTICE = "line", "fan", "lattice"
FIRST = "n0"
"""The node that a run begins with: every shape has exactly one."""
WIDTH = 20
"""How wide a lattice is, whatever its size: the same work at once, more of it."""

Start = Callable[[str, int, int], Awaitable[None]]


def edges(shape: str, size: int) -> list[tuple[int, ...]]:
    """What each of ``size`` nodes depends on.

    A line is one after another. A fan is a root, everything else, and a join. A lattice is layers of twenty, where
    each node needs two of the layer before it.
    """
    if shape == LINE:
        return [(), *((number - 1,) for number in range(1, size))]
    if shape == FAN:
        return [(), *((0,) for _ in range(size - 2)), tuple(range(1, size - 1))]
    return [(), *(_above(number) for number in range(1, size))]


def _above(number: int) -> tuple[int, ...]:
    layer, place = divmod(number - 1, WIDTH)
    if layer == 0:
        return (0,)
    first = 1 + (layer - 1) * WIDTH
    return (first + place, first + (place + 1) % WIDTH)


def document(shape: str, size: int) -> dict[str, Any]:
    """The shape as one of our DAGs."""
    return {
        "nodes": [
            {"id": f"n{number}", "type": "noop", "deps": [f"n{dep}" for dep in deps]}
            for number, deps in enumerate(edges(shape, size))
        ]
    }


async def start_on_command(board: SharedProgress, start: Start) -> None:
    """Start runs as the parent says, a line each: ``SHAPE NUMBER COUNT SIZE``, where COUNT is always one run."""
    send_line("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        shape, number, _, size = line.split()
        board.committed(int(number))
        await start(shape, int(number), int(size))
        send_line("ok")
