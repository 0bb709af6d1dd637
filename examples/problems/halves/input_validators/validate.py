"""Exit with 42 if standard input keeps the promises of the statement."""

import re
import sys

text = sys.stdin.read()
if not re.fullmatch(r"[1-9][0-9]?\n[1-9][0-9]{0,9}(?: [1-9][0-9]{0,9})*\n", text):
    sys.exit("not a number of jewels and a line of weights")
n, *weights = map(int, text.split())
sys.exit(42 if n <= 60 and len(weights) == n and max(weights) <= 10**9 else "too many jewels, or too heavy ones")
