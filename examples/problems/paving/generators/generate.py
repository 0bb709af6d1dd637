"""Write every secret test: python3 generate.py FOLDER. The same files come out each time.

The answers come from powers of a matrix, which no solution of the jury's uses.
"""

import sys
from pathlib import Path

MODULUS = 10**9 + 7
Matrix = tuple[int, int, int, int]
TESTS = {
    "1-short": {"1": 0, "2": 1, "3": 2, "4": 10, "5": 24, "6": 25},
    "2-long": {"1": 0, "2": 44, "3": 45, "4": 93, "5": 1_000, "6": 999_999, "7": 1_000_000},
    "3-endless": {"1": 3_000_000, "2": 20_000_000, "3": 10**15 + 37, "4": 10**18},
}


def times(a: Matrix, b: Matrix) -> Matrix:
    return (
        (a[0] * b[0] + a[1] * b[2]) % MODULUS,
        (a[0] * b[1] + a[1] * b[3]) % MODULUS,
        (a[2] * b[0] + a[3] * b[2]) % MODULUS,
        (a[2] * b[1] + a[3] * b[3]) % MODULUS,
    )


def ways(n: int) -> int:
    result, base = (1, 0, 0, 1), (1, 1, 1, 0)
    while n:
        if n & 1:
            result = times(result, base)
        base = times(base, base)
        n >>= 1
    return result[0]


for group, tests in TESTS.items():
    target = Path(sys.argv[1]) / group
    target.mkdir(parents=True, exist_ok=True)
    for name, n in tests.items():
        (target / f"{name}.in").write_text(f"{n}\n")
        (target / f"{name}.ans").write_text(f"{ways(n)}\n")
