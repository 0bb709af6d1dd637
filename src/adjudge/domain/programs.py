"""Submitted sources, jury programs and their protocols: checkers, interactors, validators, stubs.

Test cases and scoring are in ``problem``; the judge implements the protocols.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class SourceFormat(StrEnum):
    """How the source of a submission is stored."""

    TEXT = "text"
    """The text of its only file; the language decides its name."""
    FILES = "files"
    """The document of its files and entry point (``judge.source_bundle``)."""


class ProblemFiles(Protocol):
    """Read access to the files of a package."""

    def locate(self, path: str) -> Path:
        """The real path of a package-relative path; raises ``NotFound``."""

    def size_bytes(self, path: str) -> int: ...

    def sha256(self, path: str) -> str:
        """The digest of the file, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """The package file ``path``, visible to a program as ``name`` in its work directory."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Program:
    """A jury program: a checker, validator, generator or solution."""

    name: str
    files: tuple[FileRef, ...]
    """Its sources; with more than one, ``name`` is the path below the program's folder."""
    language: str = ""
    entry_point: str = ""
    support: tuple[FileRef, ...] = ()
    """Copied beside the sources but not compiled: headers, data."""
    compile_flags: tuple[str, ...] = ()
    has_build_script: bool = False
    """It has ``build`` and/or ``run``: ``build`` is executed in a copy of the folder, then ``run`` is the program."""
    is_binary: bool = False
    """An executable for this machine, not a source (CMS)."""


class NativeChecker(StrEnum):
    """Built-in comparators. Each is equivalent to the reference implementation it is named after."""

    ICPC = "icpc"
    """The default output validator of ICPC packages before 2025-09, as in problemtools; options are arguments
    (``case_sensitive``, ``float_tolerance`` E…)."""
    ICPC_2025_09 = "icpc-2025-09"
    """The same as specified by 2025-09: decimal numbers only, and NUL is an ordinary byte."""
    EXACT = "exact"
    LINE = "line"
    TOKEN = "token"  # noqa: S105  # a kind of comparison, no secret
    FLOAT = "float"
    SORTED = "sorted"
    """Option ``by``: ``lines`` or ``tokens``."""
    WCMP = "wcmp"
    LCMP = "lcmp"
    FCMP = "fcmp"
    NCMP = "ncmp"
    RCMP = "rcmp"
    """testlib's rcmp4, rcmp6, rcmp9: option ``epsilon``."""
    YESNO = "yesno"
    NYESNO = "nyesno"
    DMOJ_STANDARD = "dmoj-standard"
    DMOJ_IDENTICAL = "dmoj-identical"
    DMOJ_EASY = "dmoj-easy"
    DMOJ_RSTRIPPED = "dmoj-rstripped"
    DMOJ_SORTED = "dmoj-sorted"
    """Option ``split_on``: ``lines`` or ``whitespace``."""
    DMOJ_FLOATS = "dmoj-floats"
    """Options ``precision`` (digits) and ``error_mode``: ``default``, ``absolute`` or ``relative``."""
    DMOJ_LINECOUNT = "dmoj-linecount"
    WHITE_DIFF = "white-diff"
    """CMS's comparison of lines by tokens."""


class CheckerProtocol(StrEnum):
    """How a checker is called and how it reports its result."""

    NATIVE = "native"
    ICPC = "icpc"
    """``validator input answer feedback/ args < output``; exit codes 42 and 43. All of several must accept."""
    TESTLIB = "testlib"
    """``checker input output answer``; exit codes 0, 1, 2, 3, 7, … and the first words on stderr."""
    CMS = "cms"
    """``checker input answer output``; the outcome, from 0 to 1, on stdout."""
    DMOJ = "dmoj"
    """``checker input output answer``; exit codes 0 and 1, others are checker errors. Also for custom programs."""
    COCI = "coci"
    """As testlib, with ``partial X/Y``."""
    PEG = "peg"
    """``checker answer output input``; exit codes 0 and 1; two lines a, b on stdout mean a/b."""


class ScoreUnit(StrEnum):
    """The meaning of a checker's score. ICPC's score files define it themselves, except for ``UNBOUNDED``."""

    ABSOLUTE = "absolute"
    UNBOUNDED = "unbounded"
    """Absolute; the points of a case are not a maximum but the default if its checker gives no score (legacy ICPC
    packages, whose scores are unbounded unless a group states a range)."""
    FRACTION = "fraction"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Checker:
    """Decides whether an output is correct."""

    protocol: CheckerProtocol = CheckerProtocol.NATIVE
    native: NativeChecker = NativeChecker.ICPC
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of a built-in checker."""
    programs: tuple[Program, ...] = ()
    """Programs of any other checker; more than one only for ICPC (legacy)."""
    args: tuple[str, ...] = ()
    """Arguments for every case, before ``Case.checker_args``."""
    score_unit: ScoreUnit = ScoreUnit.ABSOLUTE
    runs_on_rejected: bool = False
    """It also checks outputs of programs that crashed or exceeded a limit (DMOJ ``linecount``)."""


class InteractorProtocol(StrEnum):
    """How an interactor or manager is called and how it reports its result."""

    ICPC = "icpc"
    """``validator input answer feedback/ args``; exit codes 42 and 43 decide; no checker runs."""
    TESTLIB = "testlib"
    """``interactor input tout answer``; on 0 the checker then runs with ``tout`` as the output."""
    TESTLIB_ALONE = "testlib-alone"
    """``interactor input /dev/null answer``; the exit code decides; no checker runs."""
    DMOJ = "dmoj"
    """``interactor input answer``; exit codes 0 and 1 decide; no checker runs."""
    COCI = "coci"
    """As ``DMOJ`` with testlib's codes and ``partial X/Y``."""
    CMS = "cms"
    """A manager: arguments are, for each process, a FIFO from it and a FIFO to it; the input is on stdin; reports as a
    CMS checker."""


class UserIO(StrEnum):
    """How a process of a communication problem is connected to the manager."""

    STD = "std_io"
    FIFO = "fifo_io"


@dataclass(frozen=True, slots=True)
class Interactor:
    """The jury program of an interactive or communication problem."""

    protocol: InteractorProtocol
    program: Program
    args: tuple[str, ...] = ()
    """Arguments for every case, before ``Case.checker_args`` (ICPC only)."""
    extra_cpu_ms: int = 0
    """CPU time in addition to the submission's own limit."""
    processes: int = 1
    user_io: UserIO = UserIO.STD


@dataclass(frozen=True, slots=True)
class Stub:
    """Files and options merged into submissions of one language before compilation."""

    language: str
    """``default`` applies to every language without its own stub."""
    files: tuple[FileRef, ...]
    entry_point: str = ""
    """The main class or file, if it is the stub's."""
    prelude: str = ""
    """Text inserted before each submitted source."""
    compile_flags: tuple[str, ...] = ()
    """Flags for everything compiled together."""
    run_env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the running program."""


class ValidatorProtocol(StrEnum):
    """How an input validator reports that an input is valid."""

    ICPC = "icpc"
    """Exit code 42."""
    TESTLIB = "testlib"
    """Exit code 0; ``--testset`` and ``--group`` come as arguments."""


@dataclass(frozen=True, slots=True)
class InputValidator:
    """A program that checks whether an input on stdin conforms to the statement."""

    program: Program
    protocol: ValidatorProtocol = ValidatorProtocol.ICPC
    args: tuple[str, ...] = ()
