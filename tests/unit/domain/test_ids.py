"""Creation and parsing of ids."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import new_id, parse_id, uuid7


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_new_id_is_uuid7_sorted_by_time(unix_ms: int, bits: int) -> None:
    text = uuid7(unix_ms, bits)
    assert parse_id(text) == text
    assert int(text.replace("-", "")[:12], 16) == unix_ms
    assert uuid7(max(0, unix_ms - 1), 2**74 - 1) < text or unix_ms == 0


def test_ids_within_a_millisecond_sort_by_creation(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(1_800_000_000_000_000_000, 250)
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    made = [new_id() for _ in range(8_000)]
    assert made == sorted(made)
    assert [parse_id(text) for text in made] == made


def test_new_ids_are_unique() -> None:
    assert len({new_id() for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize("text", ["", "1", "0189-", "018f0000-0000-4000-8000-000000000000", "x" * 36])
def test_invalid_id_error_names_field(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^job_id: ") as refused:
        parse_id(text, "job_id")
    assert refused.value.fields == {"field": "job_id"}


def test_parse_id_normalizes() -> None:
    text = new_id()
    assert parse_id(f"  {text.upper()}\n") == text
