# Bela could read this, but Ada has no card twice.
import sys

role, number, *cards = sys.stdin.read().split()
if role == "write":
    digits = []
    x = int(number)
    while x:
        digits.append(len(digits) * 5 + x % 5 + 1 if x % 5 else len(digits) * 5 + 1)
        x //= 5
    print(2 * len(digits), *digits, *digits)
else:
    print(sum(((int(card) - 1) % 5) * 5 ** ((int(card) - 1) // 5) for card in cards[::2]))
