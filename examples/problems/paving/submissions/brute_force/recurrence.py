# The recurrence as it stands: good for group 1.
def ways(n: int) -> int:
    return 1 if n < 2 else ways(n - 1) + ways(n - 2)


print(ways(int(input())) % (10**9 + 7))
