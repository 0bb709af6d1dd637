"""The whole suite again as an ordinary user, when this process is root: it runs beside the others and ends here."""

from __future__ import annotations

import re

import pytest

from tests.sandbox.conftest import Leg


@pytest.mark.slow
def test_the_whole_suite_passes_as_an_ordinary_user(ordinary_leg: Leg | None) -> None:
    if ordinary_leg is None:
        return  # every other test of this folder has just run as one
    code = ordinary_leg.process.wait()
    told = ordinary_leg.output.read_text(errors="replace")
    passed = re.search(r"(\d+) passed", told)
    assert code == 0, told[-20_000:]
    assert passed
    assert int(passed[1]) > 100
