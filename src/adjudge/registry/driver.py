"""The protocol of worker registries: workers register with a lease and disappear when they stop renewing it.

The registry never decides who may write a result; the fence of the job row does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from adjudge.domain.errors import InvalidInput

LEASE_SEC: Final = 15.0
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")


class WorkerHealth(StrEnum):
    """The health of a worker."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """Slower than normal: the sandbox uses one process per run instead of its agent."""
    DRAINING = "draining"
    """Claims no new jobs."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker registers."""

    name: str
    host: str
    pid: int
    version: str
    slots: int
    languages: Mapping[str, str] = field(default_factory=dict)
    """Language → version of its toolchain."""
    isolation: str = ""
    """Isolation of its programs: privileges of the launcher, and how memory is limited."""
    health: WorkerHealth = WorkerHealth.STARTING


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker with a valid lease, and its remaining time."""

    info: WorkerInfo
    lease_left_sec: float


class Registry(Protocol):
    """The live workers. Raises ``Unavailable`` while the registry is down."""

    async def register(self, info: WorkerInfo) -> None:
        """Register a worker with a new lease; replaces an entry of the same name."""
        ...

    async def keep_alive(self, name: str, *, health: WorkerHealth) -> bool:
        """Renew the lease. False if it has expired: register again."""
        ...

    async def deregister(self, name: str) -> None:
        """Remove the entry immediately."""
        ...

    async def list(self) -> list[LiveWorker]:
        """The live workers, sorted by name."""
        ...

    async def close(self) -> None:
        """Disconnect; leases continue until they expire."""
        ...


def check_worker_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"worker_id: {name[:64]!r} cannot name a worker; use letters, digits and . _ : @ -, at most 128 "
            "characters, the first a letter or a digit.",
            field="worker_id",
        )
    return name
