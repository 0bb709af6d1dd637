"""Write every test: python3 generate.py FOLDER makes FOLDER/input and FOLDER/output. Always the same files."""

import random
import sys
from itertools import accumulate
from pathlib import Path


def drawn(seed: int, n: int, low: int, high: int) -> list[int]:
    dice = random.Random(seed)
    return [low + int(dice.random() * (high - low + 1)) for _ in range(n)]


def best(yields: list[int]) -> int:
    """A stretch is the difference of two prefix sums: the later one less the least before it."""
    sums = [0, *accumulate(yields)]
    least = list(accumulate(sums, min))
    return max(later - before for later, before in zip(sums[1:], least, strict=False))


TESTS = [
    [5],
    [3, -7, 4, -1, 2, -9, 1],
    drawn(3, 100, -1000, 1000),
    drawn(4, 100, -1000, -1),
    drawn(5, 4000, -(10**9), 10**9),
    [10**9] * 500 + [-(10**9)],
    drawn(7, 500, -(10**9), -1),
]

folder = Path(sys.argv[1])
for kind in ("input", "output"):
    (folder / kind).mkdir(parents=True, exist_ok=True)
for number, yields in enumerate(TESTS):
    (folder / f"input/input{number}.txt").write_text(f"{len(yields)}\n{' '.join(map(str, yields))}\n")
    (folder / f"output/output{number}.txt").write_text(f"{best(yields)}\n")
