"""Chains of nodes that do nothing, beside Prefect, DBOS and bare SQL.

One run at a time, from asking for it to the commit of its last node's end: what is measured is how fast a run gets on,
not how many runs fit on a machine. A line is all waiting for the last step, a fan all at once, with a root before and a
join after. Ours is a worker with a hundred slots, a scheduler and a process that starts runs, or all in one process on
SQLite; PostgreSQL runs with fsync on for everybody, SQLite with ``synchronous=FULL``. Only the measured
system runs: what another does while idle is no part of its value.

What peers are set to do stands in ``chains_dbos`` and ``chains_prefect``. Neither hands its steps to other processes
here, as ours may. ``chains_raw`` is the floor under a line: two fenced transactions a step.

Start latency is from asking for a run to the first line of its first node, of runs started one at a time. Growth is
what a node costs in a lattice of three sizes, twenty wide, starting included.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench.chains_progress import FAN, LATTICE, LINE
from bench.harness import Bench, Goal, interleave, is_quick, sized
from bench.peers import install, last_line, python_of
from bench.queue import Servers, create_sqlite
from bench.queue_systems import QueueSystem, SystemSpec, quantile

PACKAGES = {"DBOS": ("dbos", "psycopg[binary]"), "Prefect": ("prefect", "fastapi<0.120")}
"""What brings each peer, by package name. Prefect's server does not start with every FastAPI that it asks for."""
STEPS = sized(full=100, smoke=5)
WIDE = sized(full=100, smoke=5)
ROUNDS = sized(full=7, quick=3, smoke=1)
STARTS = sized(full=200, quick=50, smoke=5)
GAP_SEC = 0.01
WAKE_SEC = 0.2
WARM = sized(full=20, smoke=3)
SIZES = (
    sized(full=100, smoke=21),
    sized(full=1_000, smoke=42),
    sized(full=10_000, quick=3_000, smoke=63),
)
GROWTH_ROUNDS = sized(full=3, quick=1, smoke=1)
ROLES = ("scheduler", "worker", "submitter")
OURS, RAW, EMBEDDED, RAW_EMBEDDED = "PostgreSQL + Redis", "raw SQL", "embedded", "raw SQL on SQLite"
FLOORS = {OURS: RAW, EMBEDDED: RAW_EMBEDDED}


class ChainSystem(QueueSystem):
    """A system that runs chains."""

    def run(self, shape: str, size: int) -> float:
        """Run one and return what it took, in seconds."""
        with self._turn():
            return self._run(shape, size)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let its processes go on for a while, with some time to catch up."""
        self._signal(signal.SIGCONT)
        time.sleep(WAKE_SEC)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def _signal(self, number: int) -> None:
        for process in self._processes:
            os.killpg(process.pid, number)

    def _run(self, shape: str, size: int) -> float:
        began = time.perf_counter()
        first = self._tell(shape, 1, size)
        self._wait_done(first, 1)
        took = time.perf_counter() - began
        self._expect(self._submitter, "ok")
        return took

    def rate(self, size: int, shape: str = LINE) -> float:
        """Nodes per second of one run, after a small one that wakes everybody up."""
        with self._turn():
            self._run(shape, WARM)
            return size / self._run(shape, size)

    def start_ms(self, count: int) -> list[float]:
        """From asking for a run to the start of its first node, sorted."""
        first = self._next
        with self._turn():
            for _ in range(count):
                self._run(LINE, 1)
                time.sleep(GAP_SEC)
        return self.board.waits_ms(first, count)


def system_specs(servers: Servers, folder: Path) -> list[SystemSpec]:
    """Return Adjudge and its baselines, on the same two servers."""
    ours = (servers.create("chains"), servers.redis_url(0))
    return [
        SystemSpec(OURS, sys.executable, "bench.chains_adjudge", ROLES, ours),
        SystemSpec(RAW, sys.executable, "bench.chains_baseline", ("submitter",), (servers.create("floor"),)),
        SystemSpec(EMBEDDED, sys.executable, "bench.chains_adjudge", ("embedded",), (create_sqlite(folder, "chains"),)),
        SystemSpec(
            RAW_EMBEDDED, sys.executable, "bench.chains_baseline", ("submitter",), (create_sqlite(folder, "floor"),)
        ),
    ]


def open_peers(servers: Servers, folder: Path, stack: ExitStack) -> tuple[dict[str, ChainSystem], dict[str, str]]:
    """The peers that can be had and run here, and why the others cannot."""
    found, missing = dict[str, ChainSystem](), dict[str, str]()
    for peer, packages in PACKAGES.items():
        why = install(peer, packages)
        if not why:
            python = str(python_of(peer))
            address = servers.create(peer.lower(), migrated=False)
            found[peer] = ChainSystem(
                SystemSpec(peer, python, f"bench.chains_{peer.lower()}", ("all",), (address,)), folder, stack
            )
        else:
            missing[peer] = why
    for peer, runner in tuple(found.items()):
        try:
            runner.wait_ready()
            runner.run(LINE, 3)
            runner.run(FAN, 5)
        except RuntimeError as error:
            missing[peer] = last_line(str(error))
            del found[peer]
    return found, missing


def add_lines(bench: Bench, runners: Mapping[str, ChainSystem], missing: Mapping[str, str]) -> None:
    rates = interleave({name: partial(runner.rate, STEPS) for name, runner in runners.items()}, ROUNDS)
    unit = "steps/s"
    for name, floor in FLOORS.items():
        label = f"{name}: a line of {STEPS}"
        bench.compare(label, rates, name, floor, unit=unit)
    for peer, goal in (("DBOS", Goal(at_least=1.9)), ("Prefect", None)):
        label = f"{OURS}: a line of {STEPS}"
        if peer in missing:
            bench.absent(label, f"{peer}: {missing[peer]}")
        else:
            bench.compare(label, rates, OURS, peer, unit=unit, goal=goal)


def add_fans(bench: Bench, runners: Mapping[str, ChainSystem], missing: Mapping[str, str]) -> None:
    size = WIDE + 2
    takers = {name: runner for name, runner in runners.items() if name not in FLOORS.values()}
    rates = interleave({name: partial(runner.rate, size, FAN) for name, runner in takers.items()}, ROUNDS)
    peers = sorted((peer for peer in PACKAGES if peer in rates), key=lambda peer: -rates[peer])
    for name in (OURS, EMBEDDED):
        label = f"{name}: a fan {WIDE} wide"
        for place, peer in enumerate(peers):
            goal = Goal(at_least=8) if place == 0 and name == OURS else None
            bench.compare(label, rates, name, peer, unit="nodes/s", goal=goal)
        if not peers:
            bench.add(label, rates[name], "nodes/s")
    for peer, why in missing.items():
        bench.absent(f"{OURS}: a fan {WIDE} wide", f"{peer}: {why}")


def add_starts(bench: Bench, runners: Mapping[str, ChainSystem]) -> None:
    waits = {
        name: runner.start_ms(STARTS if name in FLOORS else STARTS // 5)
        for name, runner in runners.items()
        if name not in FLOORS.values()
    }
    for label, part, goal in (("p50", 0.50, Goal(limit=10)), ("p99", 0.99, None)):
        figures = {name: quantile(found, part) for name, found in waits.items()}
        theirs = ", ".join(f"{peer} {figures[peer]:.3g}" for peer in PACKAGES if peer in figures)
        for name in FLOORS:
            bench.add(f"{name}: start → first node, {label}", figures[name], "ms", against=theirs or None, goal=goal)


def add_growth(bench: Bench, runners: Mapping[str, ChainSystem]) -> None:
    """What a node costs in a small, a larger and a very large DAG, in turns."""
    for name in FLOORS:
        few = SIZES[0]
        runs: dict[str, Callable[[], float]] = {
            f"{size:,}": partial(_node_us, runners[name], size, repeats=max(1, SIZES[1] // size)) for size in SIZES
        }
        costs = interleave(runs, GROWTH_ROUNDS)
        bench.add(f"{name}: a node of {few:,}", costs[f"{few:,}"], "us")
        for size in SIZES[1:]:
            cut = " (QUICK; 10,000 in full)" if size == SIZES[-1] and is_quick() else ""
            found = {f"{size:,}": costs[f"{size:,}"], f"of {few:,}": costs[f"{few:,}"]}
            label = f"{name}: a node of {size:,}{cut}"
            bench.compare(label, found, f"{size:,}", f"of {few:,}", unit="us", goal=Goal(limit=1.25))


def _node_us(runner: ChainSystem, size: int, *, repeats: int) -> float:
    """Small runs are repeated, so that each figure is of about as many nodes."""
    took = sum(runner.run(LATTICE, size) for _ in range(repeats))
    return took / (size * repeats) * 1e6


def _progress(words: str) -> None:
    """On standard error, because a full run takes minutes."""
    print(f"bench chains: {words} …", file=sys.stderr, flush=True)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # asked to end: no process of ours may stay behind
    bench = Bench("chains")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-bench-")))
        servers = Servers(stack)
        runners = {recipe.name: ChainSystem(recipe, folder, stack) for recipe in system_specs(servers, folder)}
        _progress("peers")
        peers, missing = open_peers(servers, folder, stack)
        for name, runner in runners.items():
            runner.wait_ready()
            runner.run(LINE, WARM)
            if name in FLOORS:
                runner.run(FAN, WIDE + 2)
        everybody = {**runners, **peers}
        _progress("lines")
        add_lines(bench, everybody, missing)
        _progress("fans")
        add_fans(bench, everybody, missing)
        _progress("starts")
        add_starts(bench, everybody)
        _progress("growth")
        add_growth(bench, runners)
    bench.finish()


if __name__ == "__main__":
    main()
