"""What the Contest API reads besides the objects of a contest."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.judge.languages import Languages
from adjudge.services.ccs_loading import allowed_languages


@pytest.mark.parametrize(
    ("names", "expected"),
    [(None, {item.id for item in Languages.load()} - {"rust"}), (["rust", "go"], {"go"}), (["rust"], set[str]())],
)
def test_disabled_languages_are_not_offered(tmp_path: Path, names: list[str] | None, expected: set[str]) -> None:
    path = tmp_path / "languages.toml"
    path.write_text("[rust]\ndisabled = true\n")
    assert {item.id for item in allowed_languages(Languages.load(overlay=path), names)} == expected
