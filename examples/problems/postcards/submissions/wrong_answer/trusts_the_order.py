# Writes the digits in base 50 as different cards, and hopes that they arrive in order.
import sys

role, number, *cards = sys.stdin.read().split()
if role == "write":
    left, x, chosen = list(range(1, 51)), int(number), []
    while x:
        x, digit = divmod(x, len(left))
        chosen.append(left.pop(digit))
    print(len(chosen), *chosen)
else:
    left, x, places = list(range(1, 51)), 0, []
    for card in map(int, cards):
        places.append((left.index(card), len(left)))
        left.remove(card)
    for digit, base in reversed(places):
        x = x * base + digit
    print(x)
