#!/usr/bin/env python3
# Joins the words with single spaces.
print(*input().swapcase().split())
