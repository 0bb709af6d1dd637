"""Exit with 42 if standard input keeps the promises of the statement."""

import re
import sys

NUMBER = r"[1-9][0-9]{0,18}"


def promise(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(message)


lines = sys.stdin.read().split("\n")
promise(lines[-1] == "", "the last line does not end")
promise(re.fullmatch(NUMBER, lines[0]) is not None and int(lines[0]) <= 1000, "line 1: t is no number up to 1000")
promise(len(lines) == int(lines[0]) + 2, "the number of meadows is not t")
for row, line in enumerate(lines[1:-1], start=2):
    promise(re.fullmatch(f"{NUMBER} {NUMBER}", line) is not None, f"line {row}: not two positive numbers")
    p, q = map(int, line.split())
    promise(2 <= p <= 10**9 and 4 * q <= p * p, f"line {row}: no such meadow")
sys.exit(42)
