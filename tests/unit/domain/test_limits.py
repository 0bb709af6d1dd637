"""Checks and scaling of limits."""

from __future__ import annotations

from dataclasses import fields

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import MIB, Limits


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_invalid_limit_names_field(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{name}: ") as refused:
        Limits(**{name: -1})
    assert refused.value.fields == {"field": name}
    if name not in ("stack_bytes", "input_bytes"):
        with pytest.raises(InvalidInput):
            Limits(**{name: 0})


def test_limits_scale_for_a_slower_language() -> None:
    scaled = Limits(cpu_ms=1_000, wall_ms=3_000, memory_bytes=MIB).scaled(2.5, extra_memory_bytes=MIB)
    assert (scaled.cpu_ms, scaled.wall_ms, scaled.memory_bytes) == (2_500, 7_500, 2 * MIB)
    assert scaled.processes == Limits().processes
