"""Opening a database that cannot be opened: what is said, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.domain.errors import AdjudgeError, InvalidInput, Unavailable
from adjudge.store import open_database
from tests.support.server_process import free_port


async def _refusal(url: str) -> AdjudgeError:
    with pytest.raises(AdjudgeError) as caught:
        async with open_database(url):
            pass
    return caught.value


async def test_a_server_that_is_away_is_said_to_be() -> None:
    refusal = await _refusal(f"postgresql://person:hunter2@127.0.0.1:{free_port()}/name")
    assert isinstance(refusal, Unavailable)
    assert "Cannot connect to PostgreSQL" in refusal.message
    assert "hunter2" not in refusal.message


@pytest.mark.parametrize("place", ["u:hunter2/x@127.0.0.1:5432", "u:hunter2@127.0.0.1:99999", "u:hunter2@127.0.0.1:no"])
async def test_of_an_address_that_cannot_be_read_nothing_is_repeated(place: str) -> None:
    refusal = await _refusal(f"postgresql://{place}/name")
    assert isinstance(refusal, InvalidInput)
    assert "database_url" in refusal.message
    assert "hunter" not in refusal.message


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear Ada, this is no database at all. " * 50)
    refusal = await _refusal(f"sqlite:///{tmp_path}/letter")
    assert isinstance(refusal, Unavailable)
    assert f"{tmp_path}/letter: file is not a database" in refusal.message


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refusal = await _refusal(f"sqlite:///{tmp_path}/file/below/adjudge.db")
    assert isinstance(refusal, Unavailable)
    assert f"{tmp_path}/file/below" in refusal.message
