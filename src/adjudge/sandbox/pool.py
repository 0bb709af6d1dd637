"""The sandbox: a pool of slots, each with its agent, and the command as the fallback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from adjudge.domain.errors import Unavailable
from adjudge.sandbox.metrics import NoMetrics, SandboxMetrics
from adjudge.sandbox.report import RunReport
from adjudge.sandbox.spec import RunSpec

STDOUT_LIMIT_BYTES: Final = 262_144
STDERR_LIMIT_BYTES: Final = 1_048_576


class Sandbox:
    """Runs programs in boxes, ``slots`` at a time; ``async with Sandbox() as box: report = await box.run(spec)``."""

    def __init__(
        self,
        *,
        slots: int = 1,
        pin_cpus: Sequence[int] | None = None,
        stdout_limit_bytes: int = STDOUT_LIMIT_BYTES,
        stderr_limit_bytes: int = STDERR_LIMIT_BYTES,
        use_agent: bool = True,
        metrics: SandboxMetrics | None = None,
        state_dir: Path | None = None,
    ) -> None:
        self.slots = slots
        self.pin_cpus = pin_cpus
        self.stdout_limit_bytes = stdout_limit_bytes
        self.stderr_limit_bytes = stderr_limit_bytes
        self.use_agent = use_agent
        self.metrics = metrics or NoMetrics()
        self.state_dir = state_dir

    async def __aenter__(self) -> Self:
        """Start the agents."""
        raise Unavailable("The launcher is not built yet: run `python hatch_build.py`.")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the agents; nothing of a run is left."""

    async def run(self, spec: RunSpec) -> RunReport:
        """Run one program; it may be cancelled at any moment."""
        raise Unavailable(f"The launcher is not built yet; {spec.argv[0]!r} was not run.")

    async def run_interactive(self, contestant: RunSpec, interactor: RunSpec) -> tuple[RunReport, RunReport, int]:
        """Run two programs joined by pipes; the third value is 0 where the contestant ended first, else 1."""
        raise Unavailable(
            f"The launcher is not built yet; {contestant.argv[0]!r}, {interactor.argv[0]!r} were not run."
        )
