"""``make simulate SEEDS=1-1000``: run seeds of every kind, print those that fail.

``SEEDS=chains:1-50`` runs one kind alone, ``SEEDS=chains:17`` runs one scenario again and prints its trace.
"""

from __future__ import annotations

import sqlite3
import sys
import time

from tests.simulation.scenario import Scenario
from tests.simulation.simulate import KINDS, quiet, simulate, template

_say = sys.stdout.write


def main(argument: str) -> int:
    """Run ``[KIND:]FIRST-LAST``, or one seed."""
    kind, _, numbers = argument.rpartition(":")
    if kind and kind not in KINDS:
        _say(f"there is no kind {kind!r}; choose one of {', '.join(KINDS)}\n")
        return 2
    first, _, last = numbers.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    connection, failed = template(), 0
    if kind and len(seeds) == 1:
        failed += _run(kind, seeds[0], connection, tells=True)
        count = 1
    else:
        for each in [kind] if kind else KINDS:
            started = time.monotonic()
            failed += sum(_run(each, seed, connection) for seed in seeds)
            _say(f"{each}: {(time.monotonic() - started) / len(seeds) * 1000:.0f} ms a seed\n")
        count = len(seeds) * (1 if kind else len(KINDS))
    _say(f"{count - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _run(kind: str, seed: int, connection: sqlite3.Connection, *, tells: bool = False) -> bool:
    """Whether one seed failed."""

    def tell(scenario: Scenario) -> None:
        _say("".join(f"{line}\n" for line in scenario.trace()))

    violations = simulate(kind, seed, connection, witness=tell if tells else None)
    if violations:
        name = f"{kind}:{seed}"
        _say("\n  ".join([f"{name}: play it again with: make simulate SEEDS={name}", *violations]) + "\n")
    return bool(violations)


if __name__ == "__main__":
    with quiet():
        sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "1-200"))
