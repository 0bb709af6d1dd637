# The textbook's formula: nothing is left of a small root.
import math
import sys

_, *meadows = sys.stdin.read().splitlines()
for meadow in meadows:
    p, q = map(int, meadow.split())
    print((p - math.sqrt(p * p - 4 * q)) / 2)
