from __future__ import annotations

import io

import pytest


@pytest.fixture
def reader() -> type[io.BytesIO]:
    return io.BytesIO
