"""Write every secret test: python3 generate.py FOLDER. The same files come out each time."""

import random
import sys
from pathlib import Path

Pairs = list[tuple[int, int]]


def possible(n: int, pairs: Pairs) -> bool:
    """Take away what nothing waits for, from the end: an order exists if nothing is left."""
    left = set(range(1, n + 1))
    while left:
        waited_for = {a for a, b in pairs if b in left}
        free = left - waited_for
        if not free:
            return False
        left -= free
    return True


def shuffled(items: list[int], dice: random.Random) -> list[int]:
    """Shuffle by the one method whose results are the same in every Python."""
    return [item for _, item in sorted((dice.random(), item) for item in items)]


def along(order: list[int], count: int, dice: random.Random) -> Pairs:
    """Pairs that all agree with an order."""
    found = []
    for _ in range(count):
        i, j = sorted((int(dice.random() * len(order)), int(dice.random() * (len(order) - 1))))
        j += i == j
        found.append((order[i], order[j]))
    return found


def hidden_order(seed: int, n: int, count: int) -> tuple[int, Pairs]:
    dice = random.Random(seed)
    return n, along(shuffled(list(range(1, n + 1)), dice), count, dice)


def with_ring(seed: int, n: int, count: int, length: int) -> tuple[int, Pairs]:
    """A ring that agrees with the order but for its last pair."""
    dice = random.Random(seed)
    order = shuffled(list(range(1, n + 1)), dice)
    ring = order[-length:]
    pairs = [*along(order, count, dice), *zip(ring, ring[1:], strict=False), (ring[-1], ring[0])]
    return n, [pair for _, pair in sorted((dice.random(), pair) for pair in pairs)]


def chain(n: int, *, backwards: bool) -> tuple[int, Pairs]:
    pairs = [(i, i + 1) for i in range(1, n)]
    return n, [(b, a) for a, b in pairs][::-1] if backwards else pairs


TESTS: dict[str, tuple[int, Pairs]] = {
    "01-one-garment": (1, []),
    "02-nothing-waits": (6, []),
    "03-two-that-wait-for-each-other": (2, [(1, 2), (2, 1)]),
    "04-said-twice": (3, [(3, 1), (3, 1), (1, 2), (3, 1)]),
    "05-diamond": (5, [(5, 3), (5, 4), (3, 1), (4, 1), (1, 2)]),
    "06-few-waits-many-befores": (7, [(1, 2), (2, 3), (3, 4), (5, 7), (6, 7), (4, 5)]),
    "07-small-random": hidden_order(7, 12, 20),
    "08-ring-at-the-end": with_ring(8, 30, 40, 4),
    "09-random": hidden_order(9, 300, 900),
    "10-dense": hidden_order(11, 2000, 5000),
    "11-large-ring": with_ring(12, 150, 200, 100),
    "12-chain": chain(2000, backwards=False),
    "13-chain-backwards": chain(2000, backwards=True),
}

target = Path(sys.argv[1])
target.mkdir(parents=True, exist_ok=True)
for name, (n, pairs) in TESTS.items():
    lines = [f"{n} {len(pairs)}", *(f"{a} {b}" for a, b in pairs)]
    (target / f"{name}.in").write_text("\n".join(lines) + "\n")
    (target / f"{name}.ans").write_text("possible\n" if possible(n, pairs) else "impossible\n")
