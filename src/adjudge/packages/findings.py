"""Findings about a package: path, line, message and fix."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from adjudge.domain.errors import InvalidInput


class Severity(StrEnum):
    """The severity of a finding, from worst to mildest."""

    ERROR = "error"
    """The package cannot be used."""
    WARNING = "warning"
    """It can be used, but probably not as its author intended."""
    INFO = "info"
    """What the reader converted, assumed or ignored."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; ``line`` 0 means the whole file, an empty ``path`` the whole package."""

    severity: Severity
    path: str
    line: int
    message: str
    fix: str = ""

    def __str__(self) -> str:
        """The format of compiler messages, which editors understand."""
        where = self.path or "package"
        if self.line:
            where += f":{self.line}"
        return f"{where}: {self.severity}: {self.message}" + (f" {self.fix}" if self.fix else "")


@dataclass(slots=True)
class Findings:
    """Collects findings while a package is read, so that its author sees all of them at once."""

    items: list[Finding] = field(default_factory=list)

    def error(self, path: str, message: str, fix: str = "", line: int = 0) -> None:
        """Report a problem that makes the package unusable."""
        self._add(Severity.ERROR, path, message, fix, line)

    def warning(self, path: str, message: str, fix: str = "", line: int = 0) -> None:
        """Report a probable mistake."""
        self._add(Severity.WARNING, path, message, fix, line)

    def info(self, path: str, message: str, fix: str = "", line: int = 0) -> None:
        """Report a conversion or an assumption."""
        self._add(Severity.INFO, path, message, fix, line)

    def _add(self, severity: Severity, path: str, message: str, fix: str, line: int) -> None:
        finding = Finding(severity, path, line, message, fix)
        if finding not in self.items:
            self.items.append(finding)

    @property
    def has_errors(self) -> bool:
        return any(item.severity is Severity.ERROR for item in self.items)

    def in_order(self) -> tuple[Finding, ...]:
        """Sorted by severity, then by path and line."""
        rank = {severity: number for number, severity in enumerate(Severity)}
        return tuple(sorted(self.items, key=lambda item: (rank[item.severity], item.path, item.line)))


_SHOWN = 50
"""How many findings are in an error's message; all are in its ``findings``."""


class PackageRefused(InvalidInput):
    """Invalid problem package."""

    code = "PACKAGE_REFUSED"
    headline = "The package cannot be used:"
    advice = ""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings.in_order()
        errors = [str(item) for item in self.findings if item.severity is Severity.ERROR]
        more = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
        lines = "\n  ".join([self.headline, *errors[:_SHOWN], *more])
        super().__init__("\n".join(filter(None, (lines, self.advice))) if errors else None)


class ConversionRefused(PackageRefused):
    """The package cannot be converted."""

    code = "CONVERSION_REFUSED"
    headline = "The package can be used as it is, but not be converted to the ICPC format:"
    advice = "Publish it without converting it ('adjudge problem publish SRC'), or change what the messages name."


def package_error(path: str, message: str, fix: str = "") -> PackageRefused:
    """The error for a problem after which nothing more can be read."""
    findings = Findings()
    findings.error(path, message, fix)
    return PackageRefused(findings)
