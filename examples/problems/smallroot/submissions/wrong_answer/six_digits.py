# Right, but prints six decimals.
import math
import sys

_, *meadows = sys.stdin.read().splitlines()
for meadow in meadows:
    p, q = map(int, meadow.split())
    print(f"{2 * q / (p + math.sqrt(p * p - 4 * q)):.6f}")
