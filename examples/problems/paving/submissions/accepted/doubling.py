MODULUS = 10**9 + 7


def ways(n: int) -> tuple[int, int]:
    """The ways for n - 1 and n."""
    if n == 0:
        return 0, 1
    before, now = ways(n // 2)
    after = before + now
    even, odd = now * now + before * before, now * (after + before)
    if n % 2:
        return even % MODULUS, odd % MODULUS
    return before * (2 * now - before) % MODULUS, even % MODULUS


print(ways(int(input()))[1])
