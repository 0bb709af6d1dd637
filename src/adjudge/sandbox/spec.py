"""The specification of a sandbox run: a frozen value, validated and encoded when it is created.

No process is started and no file is opened here. A spec that cannot be executed, or whose names could leave the work
directory, is rejected with a message that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Final

from adjudge.domain.errors import InvalidInput
from adjudge.domain.limits import Limits
from adjudge.sandbox.request_records import (
    U32,
    RecordTag,
    encode_identity,
    encode_limits,
    encode_os_text,
    encode_record,
)

WORK_DIRECTORY: Final = "/work"
"""Working directory of the program: new for every run, limited in bytes and inodes."""
TMP_DIRECTORY: Final = "/tmp"  # noqa: S108  # /tmp of the sandbox, not of the host
ARGUMENT_BYTES_MAX: Final = 128 * 1024 - 1
"""Kernel limit of one string of argv or env (MAX_ARG_STRLEN, including the NUL)."""
ARGUMENTS_BYTES_MAX: Final = 1024 * 1024
"""Limit of argv and env together, always below the kernel's limit of a quarter of the stack limit."""
ARGUMENTS_MAX: Final = 16_384
FILES_MAX: Final = 64
MOUNTS_MAX: Final = 32
COLLECT_MAX: Final = 64
EGRESS_MAX: Final = 16
NAME_BYTES_MAX: Final = 1024
JOB_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_.:\-]{0,128}")
_RESERVED_TARGETS: Final = ("/", "/proc", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/tmp", "/work")  # noqa: S108  # paths inside the sandbox


class StderrTarget(Enum):
    """Special targets of stderr."""

    INTO_STDOUT = "into_stdout"


MERGE: Final = StderrTarget.INTO_STDOUT


@dataclass(frozen=True, slots=True)
class Mount:
    """A host directory or file that is mounted for the program, read-only by default."""

    source: Path
    target: str
    writable: bool = False

    def __post_init__(self) -> None:
        """Reject a target that is relative, contains ``..``, or hides a part of the sandbox."""
        if not self.source.is_absolute():
            raise InvalidInput(
                f"mounts: source {str(self.source)!r} is relative; give an absolute path.", field="mounts"
            )
        _reject_nul("mounts", str(self.source))
        check_target("mounts", self.target)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is created in the work directory before the run.

    An executable given as a path is bind-mounted read-only instead of copied, so that the start does not depend on its
    size.
    """

    name: str
    source: Path | bytes
    executable: bool = False
    encoded_name: bytes = field(init=False, repr=False, compare=False)
    bind_record: bytes = field(init=False, repr=False, compare=False)
    """Record that bind-mounts a host file; empty if the file is copied."""

    def __post_init__(self) -> None:
        """Reject a name that could leave the work directory."""
        name = check_name("files", self.name) + b"\0"
        object.__setattr__(self, "encoded_name", name)
        record = b""
        if self.executable and not isinstance(self.source, bytes):
            record = encode_record(
                RecordTag.FILE_BIND, U32.pack(1) + encode_os_text(str(self.source.absolute())) + b"\0" + name
            )
        object.__setattr__(self, "bind_record", record)


@dataclass(frozen=True, slots=True)
class Egress:
    """A host and port to which the run may open TCP connections.

    In the sandbox, the name resolves to a loopback address, and connections to it are forwarded to the real host. Other
    hosts are not reachable, their names do not resolve, and there is no UDP.
    """

    host: str
    port: int

    def __post_init__(self) -> None:
        """Reject invalid host names, addresses and ports."""
        if not re.fullmatch(r"[A-Za-z0-9.:\-]{1,253}", self.host):
            raise InvalidInput(f"egress: {self.host!r} is not a host name or address.", field="egress")
        if not 1 <= self.port <= 65_535:
            raise InvalidInput(f"egress: port {self.port} is not between 1 and 65535.", field="egress")


@dataclass(frozen=True, slots=True)
class SandboxRunSpec:
    """A program with its limits, input and output.

    ``stdin``: a file, bytes, an open descriptor, or None for empty input. ``stdout`` and ``stderr``: a file, an open
    descriptor, or None to capture them in the report (truncated); stderr may be ``MERGE``. The caller keeps ownership
    of descriptors. ``collect`` names files or directories in the work directory that are copied to ``collect_to`` after
    the run.
    """

    argv: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: Path | bytes | int | None = None
    stdout: Path | int | None = None
    stderr: Path | int | StderrTarget | None = None
    files: tuple[InputFile, ...] = ()
    mounts: tuple[Mount, ...] = ()
    collect: tuple[str, ...] = ()
    collect_to: Path | None = None
    job_id: str = ""
    attempt_id: int = 0
    egress: tuple[Egress, ...] = ()
    head: bytes = field(init=False, repr=False, compare=False)
    """Encoded records that need no descriptor; they are built during validation, which takes the same steps."""

    def __post_init__(self) -> None:
        """Reject what the kernel would reject later, and names that could leave the sandbox."""
        strings = self._check_strings()
        self._check_names()
        if not JOB_ID_PATTERN.fullmatch(self.job_id):
            raise InvalidInput(f"job_id: {self.job_id!r} must match [A-Za-z0-9_.:-]{{0,128}}.", field="job_id")
        if not 0 <= self.attempt_id < 2**63:
            raise InvalidInput(f"attempt_id: {self.attempt_id} must be between 0 and 2^63 - 1.", field="attempt_id")
        if isinstance(self.stdin, bytes) and len(self.stdin) > self.limits.input_bytes:
            raise InvalidInput(
                f"stdin: {len(self.stdin)} bytes are over the limit of {self.limits.input_bytes}.", field="stdin"
            )
        object.__setattr__(
            self, "head", encode_identity(self.job_id, self.attempt_id) + encode_limits(self.limits) + strings
        )

    def _check_strings(self) -> bytes:
        """Validate argv and env; return their records."""
        if not self.argv or not self.argv[0]:
            raise InvalidInput("argv: empty; give the program and its arguments.", field="argv")
        if len(self.argv) > ARGUMENTS_MAX:
            raise InvalidInput(f"argv: {len(self.argv)} arguments, at most {ARGUMENTS_MAX}.", field="argv")
        if any(part == ".." for part in PurePosixPath(self.argv[0]).parts):
            raise InvalidInput(f"argv: program {self.argv[0]!r} must not contain '..'.", field="argv")
        records = [encode_record(RecordTag.ARGUMENT, _encode_string("argv", argument)) for argument in self.argv]
        for name, value in self.env.items():
            if not name or "=" in name:
                raise InvalidInput(f"env: {name!r} is not a valid variable name.", field="env")
            records.append(encode_record(RecordTag.VARIABLE, _encode_string("env", f"{name}={value}")))
        encoded = b"".join(records)
        # A record has a NUL and a header of 8 bytes, as the kernel needs a NUL and a pointer per string.
        if len(records) > ARGUMENTS_MAX or len(encoded) > ARGUMENTS_BYTES_MAX:
            raise InvalidInput(f"argv, env: together over {ARGUMENTS_BYTES_MAX} bytes.", field="argv")
        return encoded

    def _check_names(self) -> None:
        for name in self.collect:
            check_name("collect", name)
        if self.collect and self.collect_to is None:
            raise InvalidInput("collect_to: required with collect; give the target directory.", field="collect_to")
        _reject_duplicates("files", (entry.name for entry in self.files))
        _reject_duplicates("mounts", (entry.target for entry in self.mounts))
        _reject_duplicates("collect", self.collect)
        for label, entries, limit in (
            ("files", self.files, FILES_MAX),
            ("mounts", self.mounts, MOUNTS_MAX),
            ("collect", self.collect, COLLECT_MAX),
            ("egress", self.egress, EGRESS_MAX),
        ):
            if len(entries) > limit:
                raise InvalidInput(f"{label}: {len(entries)} entries, at most {limit}.", field=label)


def check_name(label: str, name: str) -> bytes:
    """Reject a name that could leave the work directory; return it encoded."""
    _reject_nul(label, name)
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise InvalidInput(
            f"{label}: {name!r} must be a relative path in the work directory, without empty components, '.' or '..'.",
            field=label,
        )
    encoded = encode_os_text(name)
    if len(encoded) > NAME_BYTES_MAX or any(len(part) > 255 for part in encoded.split(b"/")):
        raise InvalidInput(f"{label}: the name {name[:40]!r}… is too long.", field=label)
    return encoded


def check_target(label: str, target: str) -> None:
    """Reject a mount point that is relative, contains ``..``, or hides a part of the sandbox."""
    _reject_nul(label, target)
    if not target.startswith("/") or any(part in ("", ".", "..") for part in target[1:].split("/")):
        raise InvalidInput(f"{label}: target {target!r} must be an absolute path without '.' or '..'.", field=label)
    if target in _RESERVED_TARGETS or target.startswith(("/proc/", "/dev/")):
        raise InvalidInput(f"{label}: mount target {target!r} is reserved.", field=label)
    if len(encode_os_text(target)) > NAME_BYTES_MAX:
        raise InvalidInput(f"{label}: target {target[:40]!r}… is too long.", field=label)


def _encode_string(label: str, text: str) -> bytes:
    _reject_nul(label, text)
    encoded = encode_os_text(text)
    if len(encoded) > ARGUMENT_BYTES_MAX:
        raise InvalidInput(f"{label}: {text[:40]!r}… is over {ARGUMENT_BYTES_MAX} bytes.", field=label)
    return encoded + b"\0"


def _reject_nul(label: str, text: str) -> None:
    if "\0" in text:
        raise InvalidInput(f"{label}: {text[:40]!r} contains a NUL byte.", field=label)


def _reject_duplicates(label: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"{label}: duplicate {name!r}.", field=label)
        seen.add(name)
