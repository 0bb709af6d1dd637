"""Exit with 42 if standard input keeps the promises of the statement."""

import re
import sys

NUMBER = r"(?:0|[1-9][0-9]{0,9})"


def promise(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(message)


text = sys.stdin.read()
lines = text.split("\n")
promise(lines[-1] == "", "the last line does not end")
promise(re.fullmatch(NUMBER, lines[0]) is not None, "line 1: no number")
count = int(lines[0])
promise(1 <= count <= 1000, "line 1: t is out of range")
promise(len(lines) == count + 2, f"there are {len(lines) - 2} roads, not {count}")
for row, line in enumerate(lines[1:-1], start=2):
    promise(re.fullmatch(f"{NUMBER} {NUMBER} {NUMBER}", line) is not None, f"line {row}: not three numbers")
    promise(all(1 <= int(word) <= 10**9 for word in line.split()), f"line {row}: a number is out of range")
sys.exit(42)
