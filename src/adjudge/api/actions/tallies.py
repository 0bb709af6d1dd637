"""How problems fare, counted once a minute for all who look at lists; how the viewer stands with one of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from functools import lru_cache
from types import MappingProxyType

from adjudge.api.parts import Parts
from adjudge.api.viewer import Viewer
from adjudge.cache.entities import Entity
from adjudge.store import problem_tallies
from adjudge.store.problem_tallies import Standing, Tally


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


async def standing(parts: Parts, viewer: Viewer, problem_id: str) -> Standing:
    """Whether the viewer has solved a problem or tried it, as lists have it; a visitor has done neither."""
    user_id = viewer.user_id
    if user_id is None:
        return Standing()
    return await parts.database.read(lambda tx: problem_tallies.standing(tx, user_id=user_id, problem_id=problem_id))
