"""How problems fare, counted once a minute for all who look at lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from functools import lru_cache
from types import MappingProxyType

from adjudge.api.parts import Parts
from adjudge.cache.entities import Entity
from adjudge.store import problem_tallies
from adjudge.store.problem_tallies import Tally


async def all_tallies(parts: Parts) -> Mapping[str, Tally]:
    """Problem → how it fares, at most a few minutes old.

    All problems at once, under one key: lists differ by what was searched for, and counting for each would cost as
    often as people search.
    """

    async def load() -> bytes:
        counted = await parts.database.read(problem_tallies.count)
        return json.dumps({problem_id: astuple(tally) for problem_id, tally in counted.items()}).encode()

    found = await parts.cache.get(Entity.TALLIES, "all", load)
    return _read(found.body) if found else {}


@lru_cache(maxsize=2)
def _read(body: bytes) -> Mapping[str, Tally]:
    """Read once for as long as the bytes are kept: their hash is, so that finding them again costs nothing."""
    return MappingProxyType({problem_id: Tally(*numbers) for problem_id, numbers in json.loads(body).items()})
