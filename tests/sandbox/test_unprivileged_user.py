"""The whole suite again as an ordinary user, when this process is root: it runs beside the others and ends here."""

from __future__ import annotations

import re

import pytest

from tests.sandbox.conftest import UnprivilegedRun


@pytest.mark.slow
def test_suite_passes_as_unprivileged_user(unprivileged_run: UnprivilegedRun | None) -> None:
    if unprivileged_run is None:
        return  # every other test of this folder has just run as one
    code = unprivileged_run.process.wait()
    output_text = unprivileged_run.output.read_text(errors="replace")
    passed = re.search(r"(\d+) passed", output_text)
    assert code == 0, output_text[-20_000:]
    assert passed
    assert int(passed[1]) > 100
