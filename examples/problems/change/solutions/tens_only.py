# Believes in a coin of ten everywhere: the first batch fails, and the second one depends on it.
amount = int(input().split()[0])
print(1 if amount == 1 else amount // 10 + 1)
print(*[1] if amount == 1 else [10] * (amount // 10 + 1))
