"""What is to be run in the box: one frozen value, checked when it is made.

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


class Merge(Enum):
    """Where stderr may go besides a place of its own."""

    INTO_STDOUT = "into_stdout"


MERGE: Final = Merge.INTO_STDOUT


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

    def __post_init__(self) -> None:
        """Refuse a name that could leave the work directory."""
        check_name("files", self.name)


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
class RunSpec:
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
    stderr: Path | int | Merge | None = None
    files: tuple[InputFile, ...] = ()
    mounts: tuple[Mount, ...] = ()
    collect: tuple[str, ...] = ()
    collect_to: Path | None = None
    job_id: str = ""
    attempt_id: int = 0
    egress: tuple[Egress, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what the kernel would refuse later, or what could leave the box, naming the field."""
        self._check_argv()
        self._check_env()
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

    def _check_argv(self) -> None:
        if not self.argv or not self.argv[0]:
            raise InvalidInput("argv: empty; give the program and its arguments.", field="argv")
        if len(self.argv) > ARGUMENTS_MAX:
            raise InvalidInput(f"argv: {len(self.argv)} arguments, at most {ARGUMENTS_MAX}.", field="argv")
        if any(part == ".." for part in PurePosixPath(self.argv[0]).parts):
            raise InvalidInput(f"argv: the program {self.argv[0]!r} may not go up with '..'.", field="argv")
        for argument in self.argv:
            _check_string("argv", argument)

    def _check_env(self) -> None:
        for name, value in self.env.items():
            if not name or "=" in name:
                raise InvalidInput(f"env: {name!r} is not a name of a variable.", field="env")
            _check_string("env", f"{name}={value}")
        strings = [*self.argv, *(f"{name}={value}" for name, value in self.env.items())]
        if len(strings) > ARGUMENTS_MAX or sum(len(encode(text)) + 9 for text in strings) > ARGUMENTS_BYTES_MAX:
            raise InvalidInput(f"argv, env: together over {ARGUMENTS_BYTES_MAX} bytes.", field="argv")

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


def check_name(label: str, name: str) -> None:
    """Refuse a name that is not plainly below the work directory."""
    _refuse_nul(label, name)
    parts = name.split("/")
    if not name or name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise InvalidInput(
            f"{label}: {name!r} must be a plain name below the work directory, without '/' in front, '.' or '..'.",
            field=label,
        )
    if len(encode(name)) > NAME_BYTES_MAX or any(len(encode(part)) > 255 for part in parts):
        raise InvalidInput(f"{label}: the name {name[:40]!r}… is too long.", field=label)


def check_target(label: str, target: str) -> None:
    """Refuse a mount point that is relative, traverses, or hides what the box itself provides."""
    _refuse_nul(label, target)
    if not target.startswith("/") or any(part in ("", ".", "..") for part in target[1:].split("/")):
        raise InvalidInput(f"{label}: target {target!r} must be an absolute path without '.' or '..'.", field=label)
    if target in _RESERVED_TARGETS or target.startswith(("/proc/", "/dev/")):
        raise InvalidInput(f"{label}: target {target!r} belongs to the box itself; choose another.", field=label)
    if len(encode(target)) > NAME_BYTES_MAX:
        raise InvalidInput(f"{label}: target {target[:40]!r}… is too long.", field=label)


def encode(text: str) -> bytes:
    """Text as the bytes the kernel sees; names that are not UTF-8 come and go unchanged."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{text[:40]!r} holds lone surrogates and cannot be passed to a program.") from error


def _check_string(label: str, text: str) -> None:
    _refuse_nul(label, text)
    if len(encode(text)) > ARGUMENT_BYTES_MAX:
        raise InvalidInput(f"{label}: {text[:40]!r}… is over {ARGUMENT_BYTES_MAX} bytes.", field=label)


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
