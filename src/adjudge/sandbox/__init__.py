"""Runs untrusted programs in the sandbox. Other packages use only the names exported here.

::

    async with Sandbox(slots=2) as sandbox:
        report = await sandbox.run(SandboxRunSpec(argv=("/usr/bin/python3", "-c", "print(6 * 7)")))

``spec`` describes a run, ``report`` its result; ``pool`` manages the slots, ``launcher`` talks to one launcher process.
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
