# Finds the greatest common divisor by subtraction, one call deeper for every step.
import sys


def gcd(a: int, b: int) -> int:
    if a == b:
        return a
    return gcd(a - b, b) if a > b else gcd(a, b - a)


def total(k: int, n: int) -> int:
    m = n // k
    return k * m * (m + 1) // 2


_, *roads = sys.stdin.read().splitlines()
for road in roads:
    a, b, n = map(int, road.split())
    print(total(a, n) + total(b, n) - total(a * b // gcd(a, b), n))
