"""What is to be run in the box: one frozen value, checked and encoded when it is made.

Nothing here touches a process or the disk beyond looking at names. A spec that could not be honoured, or whose names
could leave the work directory, is refused here with a message that names the field.
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
"""Where the program starts: fresh, its own, and capped in bytes and inodes."""
TMP_DIRECTORY: Final = "/tmp"  # noqa: S108  # the box's own /tmp, not the host's
ARGUMENT_BYTES_MAX: Final = 128 * 1024 - 1
"""The kernel's own limit of one string of argv or env (MAX_ARG_STRLEN, its NUL included)."""
ARGUMENTS_BYTES_MAX: Final = 1024 * 1024
"""All of argv and env together; the kernel takes a quarter of the stack limit, this is always below it."""
ARGUMENTS_MAX: Final = 16_384
FILES_MAX: Final = 64
MOUNTS_MAX: Final = 32
COLLECT_MAX: Final = 64
EGRESS_MAX: Final = 16
NAME_BYTES_MAX: Final = 1024
JOB_ID_PATTERN: Final = re.compile(r"[A-Za-z0-9_.:\-]{0,128}")
_RESERVED_TARGETS: Final = ("/", "/proc", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/tmp", "/work")  # noqa: S108  # names inside the box


class StderrTarget(Enum):
    """Where stderr may go besides a place of its own."""

    INTO_STDOUT = "into_stdout"


MERGE: Final = StderrTarget.INTO_STDOUT


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory or file of the host that the program can see, read-only unless said otherwise."""

    source: Path
    target: str
    writable: bool = False

    def __post_init__(self) -> None:
        """Refuse a target that is relative, traverses, or would hide a part of the box."""
        if not self.source.is_absolute():
            raise InvalidInput(
                f"mounts: source {str(self.source)!r} is relative; give an absolute path.", field="mounts"
            )
        _refuse_nul("mounts", str(self.source))
        check_target("mounts", self.target)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file put into the fresh work directory before the run.

    An executable that comes from a path is shown read-only in its place instead of being copied: programs of any size
    start equally fast.
    """

    name: str
    source: Path | bytes
    executable: bool = False
    encoded_name: bytes = field(init=False, repr=False, compare=False)
    shown_as: bytes = field(init=False, repr=False, compare=False)
    """The record that shows a file of the host in its place; empty where it is to be copied in any case."""

    def __post_init__(self) -> None:
        """Refuse a name that could leave the work directory."""
        name = check_name("files", self.name) + b"\0"
        object.__setattr__(self, "encoded_name", name)
        shown = b""
        if self.executable and not isinstance(self.source, bytes):
            shown = encode_record(
                RecordTag.FILE_BIND, U32.pack(1) + encode_os_text(str(self.source.absolute())) + b"\0" + name
            )
        object.__setattr__(self, "shown_as", shown)


@dataclass(frozen=True, slots=True)
class Egress:
    """One host and port outside that this run may open TCP connections to, by that name.

    Inside the box the name means an address of the box's own loopback; whatever connects to it is carried to the real
    one. Nothing else can be reached, names of other hosts do not resolve, and there is no UDP.
    """

    host: str
    port: int

    def __post_init__(self) -> None:
        """Refuse what is not a plain host name or address with a port."""
        if not re.fullmatch(r"[A-Za-z0-9.:\-]{1,253}", self.host):
            raise InvalidInput(f"egress: {self.host!r} is not a host name or address.", field="egress")
        if not 1 <= self.port <= 65_535:
            raise InvalidInput(f"egress: port {self.port} is not between 1 and 65535.", field="egress")


@dataclass(frozen=True, slots=True)
class SandboxRunSpec:
    """One program, what it may use and what it gets to see.

    ``stdin``: a file, bytes, an open descriptor, or None for an empty one. ``stdout`` and ``stderr``: a file, an open
    descriptor, or None to have them in the report (capped); stderr may be ``MERGE``. Descriptors stay the caller's.
    ``collect`` names files or directories of the work directory that are copied to ``collect_to`` after the run.
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
    """What of the request needs nothing opened, encoded: checking it takes the same steps."""

    def __post_init__(self) -> None:
        """Refuse what the kernel would refuse later, or what could leave the box, naming the field."""
        strings = self._check_strings()
        self._check_names()
        if not JOB_ID_PATTERN.fullmatch(self.job_id):
            raise InvalidInput(
                f"job_id: {self.job_id!r} may only hold letters, digits and '_.:-', at most 128.", field="job_id"
            )
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
        """Check argv and the environment; gives their records."""
        if not self.argv or not self.argv[0]:
            raise InvalidInput("argv: empty; give the program and its arguments.", field="argv")
        if len(self.argv) > ARGUMENTS_MAX:
            raise InvalidInput(f"argv: {len(self.argv)} arguments, at most {ARGUMENTS_MAX}.", field="argv")
        if any(part == ".." for part in PurePosixPath(self.argv[0]).parts):
            raise InvalidInput(f"argv: the program {self.argv[0]!r} may not go up with '..'.", field="argv")
        records = [encode_record(RecordTag.ARGUMENT, _encode_string("argv", argument)) for argument in self.argv]
        for name, value in self.env.items():
            if not name or "=" in name:
                raise InvalidInput(f"env: {name!r} is not a name of a variable.", field="env")
            records.append(encode_record(RecordTag.VARIABLE, _encode_string("env", f"{name}={value}")))
        encoded = b"".join(records)
        # A record is its string with a NUL and 8 bytes of head; the kernel needs a NUL and a pointer.
        if len(records) > ARGUMENTS_MAX or len(encoded) > ARGUMENTS_BYTES_MAX:
            raise InvalidInput(f"argv, env: together over {ARGUMENTS_BYTES_MAX} bytes.", field="argv")
        return encoded

    def _check_names(self) -> None:
        for name in self.collect:
            check_name("collect", name)
        if self.collect and self.collect_to is None:
            raise InvalidInput("collect_to: give the directory that collected files are copied to.", field="collect_to")
        _refuse_duplicates("files", (entry.name for entry in self.files))
        _refuse_duplicates("mounts", (entry.target for entry in self.mounts))
        _refuse_duplicates("collect", self.collect)
        for label, entries, most in (
            ("files", self.files, FILES_MAX),
            ("mounts", self.mounts, MOUNTS_MAX),
            ("collect", self.collect, COLLECT_MAX),
            ("egress", self.egress, EGRESS_MAX),
        ):
            if len(entries) > most:
                raise InvalidInput(f"{label}: {len(entries)} entries, at most {most}.", field=label)


def check_name(label: str, name: str) -> bytes:
    """Refuse a name that is not plainly below the work directory; gives it encoded."""
    _refuse_nul(label, name)
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise InvalidInput(
            f"{label}: {name!r} must be a plain name below the work directory, without '/' in front, '.' or '..'.",
            field=label,
        )
    encoded = encode_os_text(name)
    if len(encoded) > NAME_BYTES_MAX or any(len(part) > 255 for part in encoded.split(b"/")):
        raise InvalidInput(f"{label}: the name {name[:40]!r}… is too long.", field=label)
    return encoded


def check_target(label: str, target: str) -> None:
    """Refuse a mount point that is relative, traverses, or hides what the box itself provides."""
    _refuse_nul(label, target)
    if not target.startswith("/") or any(part in ("", ".", "..") for part in target[1:].split("/")):
        raise InvalidInput(f"{label}: target {target!r} must be an absolute path without '.' or '..'.", field=label)
    if target in _RESERVED_TARGETS or target.startswith(("/proc/", "/dev/")):
        raise InvalidInput(f"{label}: mount target {target!r} is reserved.", field=label)
    if len(encode_os_text(target)) > NAME_BYTES_MAX:
        raise InvalidInput(f"{label}: target {target[:40]!r}… is too long.", field=label)


def _encode_string(label: str, text: str) -> bytes:
    _refuse_nul(label, text)
    encoded = encode_os_text(text)
    if len(encoded) > ARGUMENT_BYTES_MAX:
        raise InvalidInput(f"{label}: {text[:40]!r}… is over {ARGUMENT_BYTES_MAX} bytes.", field=label)
    return encoded + b"\0"


def _refuse_nul(label: str, text: str) -> None:
    if "\0" in text:
        raise InvalidInput(
            f"{label}: {text[:40]!r} holds a NUL byte, which ends every name in the kernel.", field=label
        )


def _refuse_duplicates(label: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"{label}: {name!r} is given twice.", field=label)
        seen.add(name)
