"""``make simulate SEEDS=1-1000``: run seeds, print those that fail; one seed alone is replayed in full."""

from __future__ import annotations

import sys
import time

from tests.simulation.run import quiet, simulate, template


def main(argument: str) -> int:
    """Run ``FIRST-LAST`` or one seed."""
    first, _, last = argument.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    connection, failed, started = template(), 0, time.monotonic()
    say = sys.stdout.write
    for seed in seeds:
        violations = simulate(seed, connection)
        if violations:
            failed += 1
            say("\n  ".join([f"seed {seed}: replay it with: make simulate SEEDS={seed}", *violations]) + "\n")
    say(f"{(time.monotonic() - started) / len(seeds) * 1000:.0f} ms a seed\n")
    say(f"{len(seeds) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    with quiet():
        sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "1-200"))
