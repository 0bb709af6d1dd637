"""A chain engine on both databases."""

from __future__ import annotations

import pytest

from tests.integration.chains.harness import ChainHarness
from tests.support.store_harness import StoreHarness


@pytest.fixture
def harness(store: StoreHarness) -> ChainHarness:
    """An engine on each database in turn."""
    return ChainHarness(store)
