# Takes the product for the least common multiple.
import sys


def total(k: int, n: int) -> int:
    m = n // k
    return k * m * (m + 1) // 2


_, *roads = sys.stdin.read().splitlines()
for road in roads:
    a, b, n = map(int, road.split())
    print(total(a, n) + total(b, n) - total(a * b, n))
