#!/usr/bin/env python3
# Makes everything a capital letter: right for whispers alone, and only if capitals are not compared.
print(input().upper())
