"""What is cached, for how long, and where: one row for each thing.

Keys read ``ns:entity:selector#v<rev>``. What a revision is bumped by stands with the writes, in the store. Only what
every visitor may see is shared through Redis; what depends on who asks stays in the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

_MINUTE: Final = 60.0
_HOUR: Final = 60 * _MINUTE


class CacheEntity(StrEnum):
    """A kind of thing that is cached; its name is the key's beginning and the label of its figures."""

    PROBLEM_LIST = "problem:list"
    PROBLEM = "problem:item"
    TEMPLATE = "problem:tpl"
    PROBLEM_STATS = "problem:tally"
    USER_LIST = "catalog:list"
    SUBMISSION_STATUS = "submission:status"


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """How long a value is believed. ``stale_sec`` more it is served while a newer one is fetched behind it."""

    ttl_sec: float
    stale_while_revalidate_sec: float
    negative_ttl_sec: float
    """How long it is remembered that there is no such thing."""
    use_redis: bool
    """Whether Redis may hold it: never source, logs, tokens or personal data."""


POLICIES: Final = MappingProxyType(
    {
        CacheEntity.PROBLEM_LIST: CachePolicy(10 * _MINUTE, 5 * _MINUTE, 5.0, use_redis=True),
        CacheEntity.PROBLEM: CachePolicy(_HOUR, 10 * _MINUTE, 5.0, use_redis=True),
        CacheEntity.TEMPLATE: CachePolicy(24 * _HOUR, _HOUR, 5.0, use_redis=True),
        CacheEntity.PROBLEM_STATS: CachePolicy(_MINUTE, 4 * _MINUTE, 5.0, use_redis=True),
        CacheEntity.USER_LIST: CachePolicy(5 * _MINUTE, 0.0, 5.0, use_redis=False),
        CacheEntity.SUBMISSION_STATUS: CachePolicy(3.0, 0.0, 1.0, use_redis=False),
    }
)
"""A status is believed for 3 seconds, so that nobody ever sees one that is 5 seconds old."""
