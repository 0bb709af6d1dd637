# Builds the order from its end, so it prints another one than the queue from the front.
import sys

n, m, *words = map(int, sys.stdin.read().split())
before: list[list[int]] = [[] for _ in range(n + 1)]
waited_for = [0] * (n + 1)
for a, b in zip(words[::2], words[1::2], strict=True):
    before[b].append(a)
    waited_for[a] += 1
free = [garment for garment in range(1, n + 1) if not waited_for[garment]]
order = []
while free:
    garment = free.pop()
    order.append(garment)
    for other in before[garment]:
        waited_for[other] -= 1
        if not waited_for[other]:
            free.append(other)
print(*reversed(order) if len(order) == n else ["impossible"])
