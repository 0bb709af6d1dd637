"""User names."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.permissions import parse_user_name

ID = "01a1e326-0b2e-761d-830c-98153bb1c498"


def test_user_name_is_normalized() -> None:
    assert parse_user_name(" Ada.L ") == "ada.l"


@pytest.mark.parametrize("name", ["", "a", "-ada", "ada lovelace", "adä", "a" * 40, ID, ID.upper()])
def test_invalid_user_name_is_rejected(name: str) -> None:
    with pytest.raises(InvalidInput, match="name: must match"):
        parse_user_name(name)
