"""Write every secret test, and its public copy: python3 generate.py FOLDER [ATTACHMENTS]. Always the same files.

The best differences are exact: for the small chests all sums are tried, and the large ones are made so that an even
division exists and is not to be seen.
"""

import random
import sys
from itertools import combinations
from pathlib import Path


def exact(weights: list[int]) -> int:
    total = sum(weights)
    sums = {0}
    for weight in weights:
        sums |= {part + weight for part in sums}
    return min(abs(total - 2 * part) for part in sums)


def drawn(seed: int, n: int, top: int) -> list[int]:
    dice = random.Random(seed)
    return [1 + int(dice.random() * top) for _ in range(n)]


def evenly_divisible(seed: int, n: int, top: int) -> list[int]:
    """Weights of which some half is exactly half of the whole: the last weight makes up the difference."""
    for attempt in range(seed, seed + 1000):
        weights = drawn(attempt, n - 1, top)
        gap = abs(sum(weights[::2]) - sum(weights[1::2]))
        if 1 <= gap <= top:
            dice = random.Random(attempt)
            return [weight for _, weight in sorted((dice.random(), weight) for weight in [*weights, gap])]
    raise AssertionError("no such weights")


assert exact([3, 1, 1, 2]) == 1 == min(abs(7 - 2 * sum(part)) for k in range(5) for part in combinations([3, 1, 1, 2], k))
CHESTS = {
    "1": ([7], 7),
    "2": ([3, 1, 4, 1, 5, 9, 2, 6], None),
    "3": (drawn(3, 14, 10**6), None),
    "4": (evenly_divisible(4, 60, 10**9), 0),
}

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for name, (weights, best) in CHESTS.items():
    text = f"{len(weights)}\n{' '.join(map(str, weights))}\n"
    (target / f"{name}.in").write_text(text)
    (target / f"{name}.ans").write_text(f"{exact(weights) if best is None else best}\n")
    if len(sys.argv) > 2:
        (Path(sys.argv[2]) / f"{name}.in").write_text(text)
