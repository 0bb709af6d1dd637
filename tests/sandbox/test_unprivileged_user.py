"""Waits for the whole suite as an unprivileged user, which runs concurrently if this process is root."""

from __future__ import annotations

import re

import pytest

from tests.sandbox.conftest import UnprivilegedRun


@pytest.mark.slow
def test_suite_passes_as_unprivileged_user(unprivileged_run: UnprivilegedRun | None) -> None:
    if unprivileged_run is None:
        return  # not root: the other tests have run as an unprivileged user
    code = unprivileged_run.process.wait()
    output = unprivileged_run.output.read_text(errors="replace")
    passed = re.search(r"(\d+) passed", output)
    assert code == 0, output[-20_000:]
    assert passed
    assert int(passed[1]) > 100
