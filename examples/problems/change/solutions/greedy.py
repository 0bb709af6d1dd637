# The largest coin first.
import sys

amount, _, *coins = map(int, sys.stdin.read().split())
paid = []
for coin in sorted(coins, reverse=True):
    paid += [coin] * (amount // coin)
    amount %= coin
print(len(paid))
print(*paid)
