"""A chain engine on both databases."""

from __future__ import annotations

import pytest

from tests.integration.chains.harness import Rig
from tests.support.stores import Store


@pytest.fixture
def rig(store: Store) -> Rig:
    """An engine on each database in turn."""
    return Rig(store)
