"""What is cached, for how long and in which tier.

Keys have the form ``ns:entity:selector#v<rev>``. The store bumps revisions in its write transactions. Only public data
is shared through Redis; data that depends on the user stays in the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

_MINUTE: Final = 60.0
_HOUR: Final = 60 * _MINUTE


class CacheEntity(StrEnum):
    """A kind of cached object; the value is its key prefix and its metric label."""

    PROBLEM_LIST = "problem:list"
    PROBLEM = "problem:item"
    TEMPLATE = "problem:tpl"
    PROBLEM_STATS = "problem:tally"
    USER_LIST = "catalog:list"
    SUBMISSION_STATUS = "submission:status"


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """Lifetimes. After ``ttl_sec`` it is still served for ``stale_while_revalidate_sec`` while it reloads."""

    ttl_sec: float
    stale_while_revalidate_sec: float
    negative_ttl_sec: float
    """How long the absence of an object is cached."""
    use_redis: bool
    """Whether it may be stored in Redis: never for source code, logs, tokens or personal data."""


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
"""A status is cached for 3 seconds, because a shown status may be at most 5 seconds old."""
