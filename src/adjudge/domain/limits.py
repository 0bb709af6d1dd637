"""Resource limits of one sandbox run, with the unit in every name."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from adjudge.domain.errors import InvalidInput

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on a program and its whole process tree."""

    cpu_ms: int = 2_000
    wall_ms: int = 6_000
    memory_bytes: int = 256 * MIB
    processes: int = 64
    open_files: int = 256
    file_bytes: int = 64 * MIB
    """Maximum size of a single written file."""
    output_bytes: int = 16 * MIB
    """stdout and stderr together."""
    input_bytes: int = 1024 * MIB
    work_bytes: int = 128 * MIB
    """Total size of the work directory; ``/tmp`` has the same limit separately."""
    work_inodes: int = 4_096
    stack_bytes: int = 0
    """0: same as the memory limit."""

    def __post_init__(self) -> None:
        """Reject limits that cannot be enforced."""
        for field in fields(self):
            value = getattr(self, field.name)
            minimum = 0 if field.name in ("stack_bytes", "input_bytes") else 1
            if value < minimum:
                raise InvalidInput(f"{field.name}: {value} is too small; must be at least {minimum}.", field=field.name)

    def scaled(self, time_factor: float = 1.0, extra_memory_bytes: int = 0) -> Limits:
        """Adjust the limits for a slower language or a larger runtime."""
        return replace(
            self,
            cpu_ms=round(self.cpu_ms * time_factor),
            wall_ms=round(self.wall_ms * time_factor),
            memory_bytes=self.memory_bytes + extra_memory_bytes,
        )
