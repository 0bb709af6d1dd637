"""The programs of a problem package and how the judge talks to each: checkers, interactors, validators, stubs.

What belongs here: which program, called by which protocol. What does not: tests and scoring (``problem``), and how a
protocol is carried out (the judge).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class ProblemFiles(Protocol):
    """Where the contents are: on disk, under names that only a package's reader decides."""

    def locate(self, path: str) -> Path:
        """Find the real file behind a package-relative path; ``NotFound`` where there is none."""

    def size_bytes(self, path: str) -> int:
        """Return how long the file is."""

    def sha256(self, path: str) -> str:
        """Return the file's digest, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """The file ``path`` of the package, to be seen by a program as ``name`` in its work directory."""

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Program:
    """A program in the package: a checker, validator, generator or jury solution."""

    name: str
    files: tuple[FileRef, ...]
    """Its sources; with more than one, ``name`` keeps the place below the program's own folder."""
    language: str = ""
    entry_point: str = ""
    support: tuple[FileRef, ...] = ()
    """Laid beside the sources and not compiled by themselves: headers, data."""
    compile_flags: tuple[str, ...] = ()
    has_build_script: bool = False
    """It brings ``build`` and/or ``run``: ``build`` is executed in a copy of the folder, then ``run`` runs."""
    is_binary: bool = False
    """It is a ready executable for this machine, not a source (CMS)."""


class NativeChecker(StrEnum):
    """Comparators that the judge has itself. A name claims to equal the reference that it is named after."""

    ICPC = "icpc"
    """The ICPC default output validator as problemtools implements it, for packages before 2025-09; its options come as
    arguments (``case_sensitive``, ``float_tolerance`` E…)."""
    ICPC_2025_09 = "icpc-2025-09"
    """The same as 2025-09 specifies it: decimal numbers only, and NUL is a byte like any other."""
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
    """CMS's comparison by lines of tokens."""


class CheckerProtocol(StrEnum):
    """How a checker is called and how it answers."""

    NATIVE = "native"
    ICPC = "icpc"
    """``validator input answer feedback/ args < output``; 42 and 43. All of several must accept."""
    TESTLIB = "testlib"
    """``checker input output answer``; 0, 1, 2, 3, 7, … and the first words on stderr."""
    CMS = "cms"
    """``checker input answer output``; the outcome, 0 to 1, on stdout."""
    DMOJ = "dmoj"
    """``checker input output answer``; 0 and 1, all else is the checker's failure. Any custom program may use it."""
    COCI = "coci"
    """As testlib, with ``partial X/Y``."""
    PEG = "peg"
    """``checker answer output input``; 0 and 1, two lines a, b on stdout give a/b."""


class ScoreUnit(StrEnum):
    """What a number from a checker means. ICPC's two score files say it themselves; of this they obey ``UNBOUNDED``."""

    ABSOLUTE = "absolute"
    UNBOUNDED = "unbounded"
    """Absolute, and the points of a case are no maximum but what it earns where its checker gives no number (legacy
    ICPC packages, whose scores range from minus to plus infinity unless a group states a range)."""
    FRACTION = "fraction"
    PERCENT = "percent"


@dataclass(frozen=True, slots=True)
class Checker:
    """What decides whether an output is right."""

    protocol: CheckerProtocol = CheckerProtocol.NATIVE
    native: NativeChecker = NativeChecker.ICPC
    options: Mapping[str, str] = field(default_factory=dict)
    """Of a native checker."""
    programs: tuple[Program, ...] = ()
    """Of every other; more than one only for ICPC (legacy)."""
    args: tuple[str, ...] = ()
    """For every case, before ``Case.checker_args``."""
    score_unit: ScoreUnit = ScoreUnit.ABSOLUTE
    runs_on_rejected: bool = False
    """It also judges the output of a program that crashed or ran out of time (DMOJ ``linecount``)."""


class InteractorProtocol(StrEnum):
    """How an interactor or manager is called and how it answers."""

    ICPC = "icpc"
    """``validator input answer feedback/ args``; 42 and 43 decide; there is no checker beside it."""
    TESTLIB = "testlib"
    """``interactor input tout answer``; on 0 the checker then runs with ``tout`` as the output."""
    TESTLIB_ALONE = "testlib-alone"
    """``interactor input /dev/null answer``; its exit code decides, no checker runs."""
    DMOJ = "dmoj"
    """``interactor input answer``; 0 and 1 decide, no checker runs."""
    COCI = "coci"
    """As ``DMOJ`` with testlib's codes and ``partial X/Y``."""
    CMS = "cms"
    """A manager: for each process a fifo from it and a fifo to it as arguments, the input on stdin; answers as a CMS
    checker does."""


class UserIO(StrEnum):
    """How a process of a communication problem is connected to the manager."""

    STD = "std_io"
    FIFO = "fifo_io"


@dataclass(frozen=True, slots=True)
class Interactor:
    """The other side of an interactive or communication problem."""

    protocol: InteractorProtocol
    program: Program
    args: tuple[str, ...] = ()
    """For every case, before ``Case.checker_args`` (ICPC only)."""
    extra_cpu_ms: int = 0
    """What it may use above the submission's own limit."""
    processes: int = 1
    user_io: UserIO = UserIO.STD


@dataclass(frozen=True, slots=True)
class Stub:
    """What is merged into submissions of one language before they are compiled."""

    language: str
    """``default`` serves every language that has no stub of its own."""
    files: tuple[FileRef, ...]
    entry_point: str = ""
    """The main class or file where it is the stub's and not the submission's."""
    prelude: str = ""
    """Text put in front of each submitted source."""
    compile_flags: tuple[str, ...] = ()
    """For all that is compiled together."""
    run_env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the running program."""


class ValidatorProtocol(StrEnum):
    """How an input validator says that an input is valid."""

    ICPC = "icpc"
    """Exit code 42."""
    TESTLIB = "testlib"
    """Exit code 0; ``--testset`` and ``--group`` come as arguments."""


@dataclass(frozen=True, slots=True)
class InputValidator:
    """A program that says whether an input, given on stdin, keeps the statement's promises."""

    program: Program
    protocol: ValidatorProtocol = ValidatorProtocol.ICPC
    args: tuple[str, ...] = ()
