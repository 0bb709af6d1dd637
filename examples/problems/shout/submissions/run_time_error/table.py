#!/usr/bin/env python3
# Has a table for letters and forgets the rest.
import string

TABLE = dict(zip(string.ascii_letters, string.ascii_letters.swapcase(), strict=True))
print("".join(TABLE[letter] for letter in input()))
