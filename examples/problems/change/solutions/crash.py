# Takes the amount for an index into the coins.
amount, _ = map(int, input().split())
coins = list(map(int, input().split()))
print(1)
print(coins[amount - 1])
