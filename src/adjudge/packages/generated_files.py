"""Files that a package describes by a command instead of containing them.

Values only; ``jury_runner`` runs the programs, in the sandbox.
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
    """The file that standard output becomes."""
    program: Program
    args: tuple[str, ...] = ()
    stdin: str | None = None
    """A package path; it may be the target of an earlier command."""
    error_target: str | None = None
    """The file that standard error becomes (DMOJ's generators print the answer there)."""
    input_file: str = ""
    output_file: str = ""
    """File names in its work directory used instead of stdin and stdout."""
    time_ms: int = 20_000
    memory_bytes: int | None = None
    """None: ``DEFAULT_MEMORY_BYTES``, or the problem's limit if that is larger."""
    validators: tuple[InputValidator, ...] = ()
    """They must accept the target before it is used."""
