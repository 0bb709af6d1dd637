# Another right row: odd guests from the oldest down, then even guests from the oldest down.
n = int(input())
if n in (2, 3):
    print("NO")
else:
    last = n if n % 2 else n - 1
    row = [*range(last, 0, -2), *range(n - n % 2, 0, -2)]
    print(*row, sep="\n")
