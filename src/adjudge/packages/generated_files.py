"""Files that a package describes and does not hold: how each is made.

What belongs here: the order to run a program and keep what it prints, as a value. What does not: carrying it out; that
is ``build``'s, with a runner that the caller brings, because programs of a package run in the sandbox only.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.limits import MIB
from adjudge.domain.programs import InputValidator, Program

DEFAULT_MEMORY_BYTES = 512 * MIB


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """Run a program and keep its output as a file of the package."""

    target: str
    """What its standard output becomes."""
    program: Program
    args: tuple[str, ...] = ()
    stdin: str | None = None
    """A package path; it may be an earlier recipe's target."""
    error_target: str | None = None
    """What its standard error becomes (DMOJ's generators print the answer there)."""
    input_file: str = ""
    output_file: str = ""
    """Names in its work directory that it uses instead of stdin and stdout."""
    time_ms: int = 20_000
    memory_bytes: int | None = None
    """None: ``DEFAULT_MEMORY_BYTES``, or the problem's own limit where that is more."""
    validators: tuple[InputValidator, ...] = ()
    """They must accept the target before anything is made from it."""
