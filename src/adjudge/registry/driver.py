"""The protocol of registries: processes register with a lease and disappear when they stop renewing it.

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


class ProcessRole(StrEnum):
    """What a process does; one that runs all roles has an entry for each."""

    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"


class ProcessHealth(StrEnum):
    """The health of a process."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """Slower than normal: the sandbox uses one process per run instead of its agent."""
    PAUSED = "paused"
    """Claims no new jobs until an operator resumes it."""
    DRAINING = "draining"
    """Claims no new jobs, and ends when its jobs are finished."""


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """What a process registers."""

    name: str
    host: str
    pid: int
    version: str
    slots: int = 0
    """How many jobs a worker runs at once."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Language → version of its toolchain, for workers."""
    isolation: str = ""
    """Isolation of its programs: privileges of the launcher, and how memory is limited."""
    health: ProcessHealth = ProcessHealth.STARTING
    role: ProcessRole = ProcessRole.WORKER


@dataclass(frozen=True, slots=True)
class LiveProcess:
    """A process with a valid lease."""

    info: ProcessInfo
    lease_left_sec: float
    seen_ago_sec: float
    """Time since the lease was renewed."""


class Registry(Protocol):
    """The live processes. Raises ``Unavailable`` while the registry is down."""

    async def register(self, info: ProcessInfo) -> None:
        """Register a process with a new lease; replaces an entry of the same name."""
        ...

    async def keep_alive(self, name: str, *, health: ProcessHealth) -> bool:
        """Renew the lease. False if it has expired: register again."""
        ...

    async def deregister(self, name: str) -> None:
        """Remove the entry immediately."""
        ...

    async def list(self) -> list[LiveProcess]:
        """The live processes, sorted by name."""
        ...

    async def close(self) -> None:
        """Disconnect; leases continue until they expire."""
        ...


def check_process_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"worker_id: {name[:64]!r} cannot name a process; use letters, digits and . _ : @ -, at most 128 "
            "characters, the first a letter or a digit.",
            field="worker_id",
        )
    return name
