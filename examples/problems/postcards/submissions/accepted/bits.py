import sys

role, number, *cards = sys.stdin.read().split()
if role == "write":
    chosen = [bit + 1 for bit in range(50) if int(number) >> bit & 1]
    print(len(chosen), *reversed(chosen))
else:
    print(sum(2 ** (int(card) - 1) for card in cards))
