"""Exit with 42 if standard input is one number, at most as large as the group (the argument) allows."""

import re
import sys

text = sys.stdin.read()
is_number = re.fullmatch(r"(?:0|[1-9][0-9]{0,18})\n", text) is not None
sys.exit(42 if is_number and int(text) <= int(sys.argv[1]) else 1)
