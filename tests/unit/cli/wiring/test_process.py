"""Garbage collector settings of serving processes."""

from __future__ import annotations

import subprocess
import sys


def test_objects_of_the_start_are_frozen() -> None:
    look = "print(gc.get_freeze_count() > len(gc.get_objects()))"
    code = f"import gc; from adjudge.cli.wiring.process import tune_gc; tune_gc(); {look}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
