# For every place in the order looks through all garments, and for each of them through all pairs.
import sys

n, m, *words = map(int, sys.stdin.read().split())
pairs = list(zip(words[::2], words[1::2], strict=True))
order: list[int] = []
worn: set[int] = set()
while len(order) < n:
    for garment in range(n, 0, -1):
        if garment not in worn and all(a in worn for a, b in pairs if b == garment):
            order.append(garment)
            worn.add(garment)
            break
    else:
        break
print(*order if len(order) == n else ["impossible"])
