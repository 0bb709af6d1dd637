# Forgets that an empty path can be paved in one way: group 1 fails, so no other group is judged.
MODULUS = 10**9 + 7
n = int(input())
before, now = 1, 1
for _ in range(min(n, 10**6) - 1):
    before, now = now, (before + now) % MODULUS
print(now if n else 0)
