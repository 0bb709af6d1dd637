"""The form of a contest's settings: values that are not numbers."""

from __future__ import annotations

import pytest

from adjudge.web import contest_form


@pytest.mark.parametrize("text", ["9" * 5_000, "-1", "x", "1.5"])
def test_invalid_number_is_an_error_of_its_field(text: str) -> None:
    form, parsed = contest_form.read({"submissions_per_minute": text}, "UTC", [])
    assert "submissions_per_minute" in form.errors
    assert "submissions_per_minute" not in parsed
