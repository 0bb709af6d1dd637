"""Find programs in a package: one file, or one folder."""

from __future__ import annotations

import posixpath

from adjudge.domain.programs import FileRef, Program
from adjudge.packages.files import PackageFiles

_SCRIPTS = frozenset({"build", "run"})


def program_at(files: PackageFiles, path: str, language: str = "", entry_point: str = "") -> Program:
    """Make a program of the file or folder at ``path``."""
    name = posixpath.basename(path)
    if path in files:
        return Program(name, (FileRef(name, path),), language, entry_point)
    inside = tuple(FileRef(inner[len(path) + 1 :], inner) for inner in files.names(path))
    scripted = any(ref.name in _SCRIPTS for ref in inside)
    return Program(name, inside, language, entry_point, has_build_script=scripted)


def programs_in(files: PackageFiles, folder: str, *, skip: frozenset[str] = frozenset()) -> tuple[Program, ...]:
    """Make a program of every child of a folder."""
    children = [child for child in files.children(folder) if child not in skip and not child.startswith((".", "-"))]
    return tuple(program_at(files, f"{folder}/{child}") for child in children)
