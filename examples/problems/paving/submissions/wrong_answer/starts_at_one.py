# Forgets that an empty path can be paved in one way: group 1 fails, so the other groups earn nothing either.
MODULUS = 10**9 + 7


def ways(n: int) -> tuple[int, int]:
    """The ways for n - 1 and n."""
    if n == 1:
        return 1, 1
    before, now = ways(n // 2)
    after = before + now
    even, odd = now * now + before * before, now * (after + before)
    if n % 2:
        return even % MODULUS, odd % MODULUS
    return before * (2 * now - before) % MODULUS, even % MODULUS


n = int(input())
print(ways(n)[1] if n else 0)
