"""Write every secret test: python3 generate.py FOLDER. The same files come out each time.

The answers are computed with 60 decimal digits, so that no rounding of the jury's solutions is in them.
"""

import random
import sys
from decimal import Decimal, getcontext
from pathlib import Path

getcontext().prec = 60
Meadow = tuple[int, int]
TOP = 10**9


def answer(meadow: Meadow) -> str:
    p, q = map(Decimal, meadow)
    return f"{(p - (p * p - 4 * q).sqrt()) / 2:.16e}"


def meadows(seed: int, count: int, top: int) -> list[Meadow]:
    dice = random.Random(seed)
    found = []
    for _ in range(count):
        p = 2 + int(dice.random() * (top - 1))
        found.append((p, 1 + int(dice.random() * (p * p // 4))))
    return found


def narrow(seed: int, count: int) -> list[Meadow]:
    dice = random.Random(seed)
    return [(TOP - int(dice.random() * 10**6), 1 + int(dice.random() * 10**6)) for _ in range(count)]


def nearly_square(seed: int, count: int) -> list[Meadow]:
    dice = random.Random(seed)
    found = []
    for _ in range(count):
        p = TOP - int(dice.random() * 10**6)
        found.append((p, p * p // 4 - int(dice.random() * 200)))
    return found


TESTS: dict[str, list[Meadow]] = {
    "01-smallest": [(2, 1), (3, 1), (3, 2), (4, 1), (4, 4)],
    "02-whole-sides": [(a + b, a * b) for a in range(1, 9) for b in range(a, 9)],
    "03-small-random": meadows(3, 60, 100),
    "04-squares": [(2 * side, side * side) for side in (1, 7, 1000, 99_999, 33_554_433)],
    "05-narrow": [(TOP, 1), (TOP, 2), (TOP - 1, 3), (10**8, 1), (10**6, 1), *narrow(5, 40)],
    "06-nearly-square": [(TOP, 25 * 10**16 - 1), (TOP - 1, (TOP - 1) ** 2 // 4), *nearly_square(6, 40)],
    "07-large-random": meadows(7, 1000, TOP),
}

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for name, questions in TESTS.items():
    lines = [str(len(questions)), *(f"{p} {q}" for p, q in questions)]
    (target / f"{name}.in").write_text("\n".join(lines) + "\n")
    (target / f"{name}.ans").write_text("".join(f"{answer(meadow)}\n" for meadow in questions))
