"""Exit with 42 if standard input is what the first run may be given."""

import re
import sys

found = re.fullmatch(r"write (0|[1-9][0-9]{0,15})\n", sys.stdin.read())
sys.exit(42 if found and int(found[1]) < 2**50 else 1)
