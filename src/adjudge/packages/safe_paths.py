"""Which names inside a package are safe, and where symbolic links inside it lead."""

from __future__ import annotations

import posixpath

from adjudge.packages.findings import package_error

MAX_PATH_BYTES = 1024
MAX_DEPTH = 32
_JUNK_FOLDERS = frozenset({"__MACOSX", ".git", ".svn", ".hg"})
_JUNK_FILES = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})


def safe_path(raw: str) -> str:
    """Normalize a name; reject one that leaves the package or is misleading."""
    name = raw.replace("\\", "/").rstrip("/")
    shown = raw[:100].encode("unicode_escape").decode()
    if name.startswith("/") or (len(name) > 1 and name[1] == ":"):
        raise package_error(shown, "is an absolute path.", "Pack the files with relative paths.")
    steps = [step for step in name.split("/") if step not in ("", ".")]
    if ".." in steps:
        raise package_error(shown, "leaves the package.", "Remove the '..' from the name.")
    if any(not character.isprintable() for character in name):
        raise package_error(shown, "has a control character in its name.", "Rename it.")
    if len(name.encode(errors="replace")) > MAX_PATH_BYTES or len(steps) > MAX_DEPTH:
        raise package_error(
            shown, f"has a name longer than {MAX_PATH_BYTES} bytes or {MAX_DEPTH} folders.", "Shorten it."
        )
    return "/".join(steps)


def is_junk(name: str) -> bool:
    """Whether a file is an artifact of the archiver."""
    steps = name.split("/")
    return steps[-1] in _JUNK_FILES or not _JUNK_FOLDERS.isdisjoint(steps)


def link_target(name: str, target: str) -> str:
    """The name that a link at ``name`` points to; rejects one that leaves the package."""
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if target.startswith("/") or joined == ".." or joined.startswith("../") or "\0" in target:
        raise package_error(name, "is a link that leaves the package.", "Replace it by the file it points to.")
    return "" if joined == "." else joined
