"""A process that serves is out of its collector's way."""

from __future__ import annotations

import subprocess
import sys


def test_what_start_up_made_is_not_gone_through_again() -> None:
    look = "print(gc.get_freeze_count() > len(gc.get_objects()))"
    code = f"import gc; from adjudge.cli.steady import steady; steady(); {look}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
