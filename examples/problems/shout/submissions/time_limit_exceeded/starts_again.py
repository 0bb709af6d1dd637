#!/usr/bin/env python3
# Repairs the message from its first letter again for every letter that it adds.
line = input()
for length in range(len(line) + 1):
    repaired = []
    for letter in line[:length]:
        repaired.append(letter.swapcase())
print("".join(repaired))
