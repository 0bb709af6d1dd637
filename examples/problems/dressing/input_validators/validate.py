"""Exit with 42 if standard input keeps the promises of the statement."""

import re
import sys

NUMBER = r"(?:0|[1-9][0-9]{0,3})"


def promise(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(message)


lines = sys.stdin.read().split("\n")
promise(lines[-1] == "", "the last line does not end")
for row, line in enumerate(lines[:-1], start=1):
    promise(re.fullmatch(f"{NUMBER} {NUMBER}", line) is not None, f"line {row}: not two numbers")
(n, m), *pairs = (tuple(map(int, line.split())) for line in lines[:-1])
promise(1 <= n <= 2000 and m <= 5000, "line 1: n or m is out of range")
promise(len(pairs) == m, f"there are {len(pairs)} pairs, not {m}")
for row, (a, b) in enumerate(pairs, start=2):
    promise(1 <= a <= n and 1 <= b <= n and a != b, f"line {row}: no pair of garments")
sys.exit(42)
