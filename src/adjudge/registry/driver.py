"""Who is alive: workers announce themselves under a lease and disappear when they stop renewing it.

What belongs here: the protocol and what a worker says of itself. What does not: jobs. That a worker is alive never
decides who may write a result; the fence of the job's row does.
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
    """How a worker feels."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """At work, but slower than it could be: the sandbox fell back from its agent to one process for each run."""
    DRAINING = "draining"
    """Takes no new jobs."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker says of itself."""

    name: str
    host: str
    pid: int
    version: str
    slots: int
    languages: Mapping[str, str] = field(default_factory=dict)
    """Language → version of its toolchain."""
    isolation: str = ""
    """What holds its programs: whose rights the launcher has, and what keeps their memory."""
    health: WorkerHealth = WorkerHealth.STARTING


@dataclass(frozen=True, slots=True)
class LiveWorker:
    """A worker whose lease holds, and for how long still."""

    info: WorkerInfo
    lease_left_sec: float


class Registry(Protocol):
    """The workers that are alive. ``Unavailable`` while the registry is away."""

    async def register(self, info: WorkerInfo) -> None:
        """Enter a worker with a fresh lease; an entry of the same name is replaced."""
        ...

    async def keep_alive(self, name: str, *, health: WorkerHealth) -> bool:
        """Renew the lease. False where it has passed: announce again."""
        ...

    async def deregister(self, name: str) -> None:
        """Disappear at once."""
        ...

    async def list(self) -> list[LiveWorker]:
        """Name the living, in the order of their names."""
        ...

    async def close(self) -> None:
        """Let go of the registry; leases run on."""
        ...


def check_worker_name(name: str) -> str:
    """Return ``name`` if a worker may have it."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"worker_id: {name[:64]!r} cannot name a worker; use letters, digits and . _ : @ -, at most 128 "
            "characters, the first a letter or a digit.",
            field="worker_id",
        )
    return name
