#!/usr/bin/env python3
"""Exit with 42 if standard input is one line as the statement describes it."""

import re
import sys

sys.exit(42 if re.fullmatch(r"[!-~](?:[ -~]{0,9998}[!-~])?\n", sys.stdin.read()) else 1)
