# Never says NO.
n = int(input())
print(*range(2, n + 1, 2), *range(1, n + 1, 2))
