"""``make simulate-contest``: a contest with a thousand teams twice, the second time with a killed worker.

Starts a private PostgreSQL, Redis and S3 and an installation on loopback. Exits with 1 if the scoreboards differ, a
submission was lost or judged twice, or the scoreboard is not what a recomputation gives.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from adjudge.cli.contest_simulate import choose_programs, load_programs
from adjudge.contests.simulation import plan_simulation
from tests.rehearsal.rehearsal import RehearsalResult, compare, open_rehearsal
from tests.support.databases import PostgresDatabases
from tests.support.problem_packages import EXAMPLES
from tests.support.servers import PostgresServer, RedisServer, S3Server


def main() -> int:
    """Run both contests and print what they show."""
    options = _options()
    programs = choose_programs(load_programs(EXAMPLES), options.problem, options.language)
    plan = plan_simulation(seed=options.seed, teams=options.teams, programs=programs, submissions=options.submissions)
    _say(f"{plan.teams} teams, {len(plan.submissions)} submissions on {', '.join(plan.problems)}, seed {options.seed}")
    duration_sec = len(plan.submissions) / options.rate
    with ExitStack() as stack:
        postgres, redis, s3 = PostgresServer(), RedisServer(), S3Server()
        for server in (postgres, redis, s3):
            server.start()
            stack.callback(server.stop)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-rehearsal-")))
        url = stack.enter_context(PostgresDatabases(postgres).fresh())
        rehearsal = stack.enter_context(
            open_rehearsal(folder, url, redis, s3, _say, workers=options.workers, worker_slots=options.slots)
        )
        began = time.monotonic()
        rehearsal.publish(plan.problems)
        _say(f"published {len(plan.problems)} problems in {time.monotonic() - began:.0f} s")
        results = [
            rehearsal.run(name, plan, duration_sec, kill=kill) for name, kill in (("calm", False), ("crash", True))
        ]
    for result in results:
        _describe(result)
    faults = compare(*results)
    for fault in faults[:20]:
        _say(f"FAULT: {fault}")
    _say("failed" if faults else "passed: equal scoreboards, one verdict for every submission, nothing lost")
    return 1 if faults else 0


def _describe(result: RehearsalResult) -> None:
    shown = asdict(result.summary) | {"jobs_with_a_second_attempt": result.repeated}
    _say(json.dumps(shown, indent=2))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate-contest", description=__doc__)
    parser.add_argument("--teams", type=int, default=1_000)
    parser.add_argument("--submissions", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=20.0, help="planned submissions per second")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slots", type=int, default=1, help="concurrent jobs of each worker")
    parser.add_argument("--problem", action="append", default=[], help="default: all with programs")
    parser.add_argument("--language", action="append", default=[], help="default: all")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
