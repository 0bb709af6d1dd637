"""What a run in the box costs beside a bare spawn and beside other sandboxes, all interleaved in one go.

Three programs: one that does nothing (static), an interpreter that does nothing, and one that reads a megabyte. Back to
back, and *spaced*: after 30 ms of idleness, as in real life. On one slot, and on two at once. Every run of ours has a
fresh work directory and /tmp, and is awaited on the event loop that workers have.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import uvloop

from adjudge.domain.limits import Limits
from adjudge.sandbox import InputFile, Sandbox, SandboxRunSpec, SandboxVerdict
from bench.harness import Bench, Goal, sized
from bench.sandbox_peers import Peer, find_peers, spawn, timed

FOLDER = Path(".cache/bench-sandbox").absolute()
SPACE_SECONDS = 0.030
LIMITS = Limits(cpu_ms=10_000, wall_ms=30_000)
RAW, AGENT, PINNED, COMMAND = "raw spawn", "agent", "agent, pinned to a CPU", "command"
SOURCES = {
    "noop": "int main(void) { return 0; }\n",
    "reader": "#include <unistd.h>\nint main(void) { char b[65536]; long n, all = 0; "
    "while ((n = read(0, b, sizeof b)) > 0) all += n; return all == 1048576 ? 0 : 1; }\n",
}

Contender = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A program and how to name it, outside and inside a box."""

    name: str
    argv: tuple[str, ...]
    stdin: Path | None
    spec: SandboxRunSpec
    runs: int


def build_programs() -> list[Workload]:
    """Compile the programs and write the input."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, source in SOURCES.items():
        (FOLDER / f"{name}.c").write_text(source)
        subprocess.run(["cc", "-O2", "-static", "-o", str(FOLDER / name), str(FOLDER / f"{name}.c")], check=True)
    megabyte = FOLDER / "megabyte"
    megabyte.write_bytes(b"x" * 1_048_576)
    python = shutil.which("python3", path="/usr/bin") or "/usr/bin/python3"
    quiet = (python, "-I", "-c", "pass")
    return [
        Workload("no-op", (str(FOLDER / "noop"),), None, _boxed("noop", None), sized(full=400, quick=120, smoke=5)),
        Workload(
            "python3 -c pass", quiet, None, SandboxRunSpec(argv=quiet, limits=LIMITS), sized(full=60, quick=15, smoke=5)
        ),
        Workload(
            "1 MB reader",
            (str(FOLDER / "reader"),),
            megabyte,
            _boxed("reader", megabyte),
            sized(full=200, quick=40, smoke=5),
        ),
    ]


def _boxed(name: str, stdin: Path | None) -> SandboxRunSpec:
    files = (InputFile(name, FOLDER / name, executable=True),)
    return SandboxRunSpec(argv=(f"/work/{name}",), files=files, stdin=stdin, limits=LIMITS)


async def run_in_sandbox(box: Sandbox, spec: SandboxRunSpec) -> float:
    """One run of ours, in milliseconds."""
    started = time.perf_counter()
    report = await box.run(spec)
    spent = (time.perf_counter() - started) * 1000
    if report.verdict is not SandboxVerdict.OK or report.degraded:
        raise RuntimeError(f"not a fair run: {report}")
    return spent


async def outside(peer: Callable[[tuple[str, ...], Path | None], None], load: Workload) -> float:
    """One run of somebody else's."""
    return timed(peer, load.argv, load.stdin)


async def medians(contenders: dict[str, Contender], runs: int, pause_seconds: float) -> dict[str, float]:
    """The median milliseconds of each, one run in turn.

    In a new order every time: a box is cleared and made ready after its report, which may affect the next one.
    """
    seen: dict[str, list[float]] = {name: [] for name in contenders}
    names, chance = list(contenders), random.Random(1)
    for _ in range(runs):
        chance.shuffle(names)
        for name in names:
            if pause_seconds:
                await asyncio.sleep(pause_seconds)
            seen[name].append(await contenders[name]())
    return {name: median(values) for name, values in seen.items()}


def raw_rate(load: Workload, lanes: int, runs: int) -> float:
    """Bare spawns a second, from as many threads as there are slots."""

    def lane() -> None:
        for _ in range(runs):
            spawn(load.argv, load.stdin)

    threads = [threading.Thread(target=lane) for _ in range(lanes)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return lanes * runs / (time.perf_counter() - started)


async def box_rate(box: Sandbox, load: Workload, lanes: int, runs: int) -> float:
    """Runs a second in as many slots."""

    async def lane() -> None:
        for _ in range(runs):
            await run_in_sandbox(box, load.spec)

    started = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(lanes)))
    return lanes * runs / (time.perf_counter() - started)


def goals(name: str, spaced: bool, load: str) -> Goal | None:
    """The goals are about the no-op: the rest is the program's own time."""
    if load != "no-op":
        return None
    if name in (AGENT, PINNED):
        return Goal(limit=2.0 if spaced else 1.5)
    return Goal(limit=10.0) if name == COMMAND and not spaced else None


async def measure_load(bench: Bench, load: Workload, boxes: dict[str, Sandbox], peers: list[Peer]) -> None:
    """One program, back to back and spaced, against everyone."""
    contenders: dict[str, Contender] = {RAW: partial(outside, spawn, load)}
    for name, box in boxes.items():
        contenders[name] = partial(run_in_sandbox, box, load.spec)
    for peer in peers:
        if peer.run is not None:
            contenders[peer.name] = partial(outside, peer.run, load)
    for spaced in (False, True):
        runs = load.runs // 4 if spaced else load.runs
        figures = await medians(contenders, max(5, runs), SPACE_SECONDS if spaced else 0)
        for name in contenders:
            label = f"{load.name}, {'spaced' if spaced else 'back to back'}: {name}"
            bench.compare(label, figures, name, RAW, unit="ms", goal=goals(name, spaced, load.name))
        measured = [peer.name for peer in peers if peer.name in figures]
        if measured:
            fastest = min(measured, key=lambda name: figures[name])
            label = f"{load.name}, {'spaced' if spaced else 'back to back'}: agent against the fastest peer"
            bench.compare(label, figures, AGENT, fastest, unit="ms", goal=Goal(limit=1.0))


async def measure_two(bench: Bench, load: Workload) -> None:
    """Two slots at once against two bare spawners."""
    runs = sized(full=400, quick=120, smoke=5)
    seen: dict[str, list[float]] = {RAW: [], AGENT: [], PINNED: []}
    cpus = sorted(os.sched_getaffinity(0))[:2]
    async with Sandbox(unsafe=True, slots=2) as free, Sandbox(unsafe=True, slots=2, pin_cpus=cpus) as pinned:
        for _ in range(sized(full=7, quick=3, smoke=1)):
            seen[RAW].append(await asyncio.to_thread(raw_rate, load, 2, runs))
            seen[AGENT].append(await box_rate(free, load, 2, runs))
            seen[PINNED].append(await box_rate(pinned, load, 2, runs))
    figures = {name: median(rates) for name, rates in seen.items()}
    for name in (AGENT, PINNED):
        label = f"no-op, two at once: {name}"
        bench.compare(label, figures, name, RAW, unit="runs/s", goal=Goal(at_least=0.75))


async def main() -> None:
    """Measure and print."""
    bench = Bench("sandbox")
    loads, peers = await asyncio.to_thread(build_programs), await asyncio.to_thread(find_peers, FOLDER / "noop")
    last_cpu = max(os.sched_getaffinity(0))
    async with (
        Sandbox(unsafe=True) as agent,
        Sandbox(unsafe=True, pin_cpus=[last_cpu]) as pinned,
        Sandbox(unsafe=True, use_agent=False) as command,
    ):
        for load in loads:
            await measure_load(bench, load, {AGENT: agent, PINNED: pinned, COMMAND: command}, peers)
    await measure_two(bench, loads[0])
    for peer in peers:
        if peer.run is None:
            bench.absent(peer.name, peer.why_not)
    bench.finish()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
