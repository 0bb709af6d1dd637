"""Write every secret test: python3 generate.py FOLDER. The same files come out each time.

The answers are counted in a way of their own: over the residues of one period of lcm(a, b), or, where a period is
long, over the multiples themselves, merged. No formula of the jury's solutions is used.
"""

import math
import random
import sys
from pathlib import Path

Road = tuple[int, int, int]


def answer(road: Road) -> int:
    a, b, n = road
    if n // a + n // b <= 200_000:
        return sum({*range(a, n + 1, a), *range(b, n + 1, b)})
    period = math.lcm(a, b)
    if period > 200_000:
        # The rare kind is listed one by one, the frequent kind summed by Python's own arithmetic on ranges.
        rare, frequent = max(a, b), min(a, b)
        count = n // frequent
        return sum(x for x in range(rare, n + 1, rare) if x % frequent) + frequent * (count * (count + 1) // 2)
    hits = [x for x in range(1, period + 1) if x % a == 0 or x % b == 0]
    full, rest = divmod(n, period)
    whole = full * sum(hits) + len(hits) * period * (full * (full - 1) // 2)
    return whole + sum(full * period + x for x in hits if x <= rest)


def roads(seed: int, count: int, top: int, n: int) -> list[Road]:
    dice = random.Random(seed)
    pick = lambda most: 1 + int(dice.random() * most)  # noqa: E731
    return [(pick(top), pick(top), n - pick(1000) + 1) for _ in range(count)]


TESTS: dict[str, list[Road]] = {
    "01-smallest": [(1, 1, 1), (2, 2, 1), (1, 2, 1), (2, 3, 1)],
    "02-equal": [(7, 7, 100), (1, 1, 1000), (100000, 100000, 100000)],
    "03-one-divides-the-other": [(3, 9, 100), (12, 4, 97), (1, 1000, 9999)],
    "04-common-factor": [(4, 6, 1000), (12, 18, 1000), (600, 900, 100000), (9999, 6666, 100000)],
    "05-nothing-in-reach": [(500, 700, 499), (1000000, 999999, 999998)],
    "06-exactly-at-the-end": [(500, 700, 3500), (997, 3, 997), (1000, 100000, 1000000)],
    "07-past-32-bits": [(1, 2, 65535), (1, 2, 65536), (1, 2, 92681), (2, 3, 131072)],
    "08-random-small": roads(8, 60, 12, 1000),
    "09-random-large-steps": roads(9, 20, 10**6, 10**6),
    "10-random-small-steps": roads(10, 40, 40, 10**9),
    "11-largest": [(1, 1, 10**9), (1, 2, 10**9), (2, 3, 10**9), (31, 37, 10**9), (1000, 999, 10**9)],
}

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for name, questions in TESTS.items():
    lines = [str(len(questions)), *(" ".join(map(str, road)) for road in questions)]
    (target / f"{name}.in").write_text("\n".join(lines) + "\n")
    (target / f"{name}.ans").write_text("".join(f"{answer(road)}\n" for road in questions))
