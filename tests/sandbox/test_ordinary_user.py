"""The whole suite again as an ordinary user, when this process is root."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.sandbox import ordinary_user

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_whole_suite_passes_as_an_ordinary_user(program_folder: Path) -> None:
    if os.getuid() != 0:
        return  # every other test of this folder has just run as one
    options = ["--confcutdir=tests/sandbox", "-q", "-p", "no:cacheprovider", "--color=no", "-rfE"]
    done = ordinary_user.run(
        [sys.executable, "-m", "pytest", "tests/sandbox", *options],
        REPOSITORY,
        {"ADJUDGE_TEST_PROGRAMS": str(program_folder), "CI": os.environ.get("CI", "")},
        needed=(program_folder,),
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-20_000:]
    assert passed
    assert int(passed[1]) > 100
