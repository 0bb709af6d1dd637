"""Exit with 42 if standard input is a number that the judge may think of."""

import re
import sys

text = sys.stdin.read()
is_number = re.fullmatch(r"[1-9][0-9]{0,6}\n", text) is not None
sys.exit(42 if is_number and int(text) <= int("{{top}}") else 1)
