"""The only door to the launcher: run a program in a box and learn what it came to.

::

    async with Sandbox(slots=2) as box:
        report = await box.run(RunSpec(argv=("/usr/bin/python3", "-c", "print(6 * 7)")))

``spec`` says what to run, ``report`` what came of it; ``pool`` keeps the slots, ``agent`` talks to one launcher.
"""

from adjudge.domain.limits import Limits
from adjudge.sandbox.launcher import Isolation, NoCgroup
from adjudge.sandbox.metrics import NullSandboxMetrics, SandboxMetrics
from adjudge.sandbox.pool import STDERR_LIMIT_BYTES, STDOUT_LIMIT_BYTES, Sandbox
from adjudge.sandbox.report import (
    CollectedFile,
    LimitKind,
    MemorySource,
    ProtocolError,
    ProtocolReason,
    SandboxFault,
    SandboxRunReport,
    SandboxVerdict,
    parse_report,
)
from adjudge.sandbox.reserved_slot import ReservedSlot, gather_or_cancel
from adjudge.sandbox.spec import (
    MERGE,
    TMP_DIRECTORY,
    WORK_DIRECTORY,
    Egress,
    InputFile,
    Mount,
    SandboxRunSpec,
    StderrTarget,
)

__all__ = [
    "MERGE",
    "STDERR_LIMIT_BYTES",
    "STDOUT_LIMIT_BYTES",
    "TMP_DIRECTORY",
    "WORK_DIRECTORY",
    "CollectedFile",
    "Egress",
    "InputFile",
    "Isolation",
    "LimitKind",
    "Limits",
    "MemorySource",
    "Mount",
    "NoCgroup",
    "NullSandboxMetrics",
    "ProtocolError",
    "ProtocolReason",
    "ReservedSlot",
    "Sandbox",
    "SandboxFault",
    "SandboxMetrics",
    "SandboxRunReport",
    "SandboxRunSpec",
    "SandboxVerdict",
    "StderrTarget",
    "gather_or_cancel",
    "parse_report",
]
