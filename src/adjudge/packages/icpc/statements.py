"""Statements and editorials of an ICPC package, and titles from LaTeX statements."""

from __future__ import annotations

import re

from adjudge.domain.problem import ProblemStatement
from adjudge.domain.programs import FileRef
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings

FOLDERS = ("statement", "problem_statement")
FORMATS = ("tex", "md", "html", "pdf", "txt")
_PLAIN_TITLE = re.compile(r"%%\s*plainproblemname:\s*(.+)")
_TITLE = re.compile(r"\\problemname\s*\{([^{}\\$]+)\}")


def read_statements(files: PackageFiles) -> tuple[ProblemStatement, ...]:
    """Read the statements; DOMjudge's packages may have one at the root."""
    for folder in FOLDERS:
        if result := _in_folder(files, folder, "problem"):
            return result
    at_root = [extension for extension in ("pdf", "html", "txt") if f"problem.{extension}" in files]
    return tuple(ProblemStatement("en", extension, f"problem.{extension}") for extension in at_root[:1])


def read_editorials(files: PackageFiles) -> tuple[ProblemStatement, ...]:
    return _in_folder(files, "solution", "solution")


def _in_folder(files: PackageFiles, folder: str, stem: str) -> tuple[ProblemStatement, ...]:
    pattern = re.compile(rf"{stem}(?:\.([a-zA-Z]{{2,3}}(?:-[a-zA-Z0-9]+)?))?\.({'|'.join(FORMATS)})")
    paths = files.names(folder)
    texts = {path: match for path in paths if (match := pattern.fullmatch(path[len(folder) + 1 :]))}
    assets = tuple(FileRef(path[len(folder) + 1 :], path) for path in paths if path not in texts)
    return tuple(
        ProblemStatement(match[1] or "en", match[2], path, assets if match[2] in ("tex", "md", "html") else ())
        for path, match in texts.items()
    )


def titles_from(files: PackageFiles, statements: tuple[ProblemStatement, ...], findings: Findings) -> dict[str, str]:
    """Read titles from LaTeX statements, as legacy packages have them."""
    result: dict[str, str] = {}
    for statement in statements:
        text = files.text(statement.path, findings) if statement.format == "tex" else None
        if text and (match := _PLAIN_TITLE.search(text) or _TITLE.search(text)):
            result[statement.language] = match[1].strip()
    return result
