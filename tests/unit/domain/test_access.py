"""Names of users."""

from __future__ import annotations

import pytest

from adjudge.domain.access import user_name
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id


def test_a_name_has_one_spelling() -> None:
    assert user_name(" Ada.L ") == "ada.l"


@pytest.mark.parametrize("name", ["", "a", "-ada", "ada lovelace", "adä", "a" * 40, new_id(), new_id().upper()])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name: use 2 to 39"):
        user_name(name)
