# Seats one guest for every level of recursion, and runs out of levels.
n = int(input())


def row(seat: int) -> list[int]:
    if seat > n:
        return []
    guest = 2 * seat if 2 * seat <= n else 2 * (seat - n // 2) - 1
    return [guest, *row(seat + 1)]


print(*(row(1) if n not in (2, 3) else ["NO"]))
