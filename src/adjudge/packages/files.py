"""The files of an opened package: a flat map from safe names to real files.

Looks up, reads and hashes files and replaces them by derived ones; ``archive`` decides which names are safe. A name is
relative, ``/``-separated and never leaves the package; the real file may be anywhere (an extracted entry, the target of
a link), so neither can be derived from the other.
"""

from __future__ import annotations

import hashlib
import posixpath
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from adjudge.domain.errors import NotFound
from adjudge.domain.programs import FileRef, Program
from adjudge.packages.archive_limits import UnpackBudget
from adjudge.packages.findings import Findings

TEXT_BYTES = 8 * 1024 * 1024
"""Maximum size of a file that is read as text: metadata, sources, statements. Test data is never read completely."""
_CHUNK = 1024 * 1024


class PackageFiles:
    """The files of one package; implements ``domain.programs.ProblemFiles``."""

    def __init__(self, result: dict[str, Path], derived_dir: Path, budget: UnpackBudget | None = None) -> None:
        self.budget = budget or UnpackBudget()
        """For archives inside the package."""
        self._files = result
        self._derived_dir = derived_dir
        self._digests: dict[str, str] = {}
        self._order: list[bytes] = []
        self._derived = 0

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def names(self, under: str = "") -> list[str]:
        """List the files below a folder, in byte order."""
        names = self._sorted()
        if not under:
            return [name.decode() for name in names]
        prefix = f"{under}/".encode()
        # No name contains the byte 0xff: it does not occur in UTF-8.
        return [name.decode() for name in names[bisect_left(names, prefix) : bisect_left(names, prefix + b"\xff")]]

    def _sorted(self) -> list[bytes]:
        """All names in byte order, so that a folder is one slice."""
        if len(self._order) != len(self._files):
            self._order = sorted(name.encode() for name in self._files)
        return self._order

    def has_folder(self, name: str) -> bool:
        names, prefix = self._sorted(), f"{name}/".encode()
        at = bisect_left(names, prefix)
        return at < len(names) and names[at].startswith(prefix)

    def children(self, folder: str) -> list[str]:
        """The direct children of a folder by base name, files and folders, in byte order."""
        skip = len(folder) + 1 if folder else 0
        steps = {name[skip:].partition("/")[0] for name in self.names(folder)}
        return sorted(steps, key=str.encode)

    def locate(self, path: str) -> Path:
        try:
            return self._files[path]
        except KeyError:
            raise NotFound("package_file", path) from None

    def size_bytes(self, path: str) -> int:
        return self.locate(path).stat().st_size

    def sha256(self, path: str) -> str:
        """The digest of the file; computed once."""
        if path not in self._digests:
            digest = hashlib.sha256()
            for chunk in self.chunks(path):
                digest.update(chunk)
            self._digests[path] = digest.hexdigest()
        return self._digests[path]

    def chunks(self, path: str) -> Iterator[bytes]:
        with self.locate(path).open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk

    def head(self, path: str, size_bytes: int) -> bytes:
        """Read at most ``size_bytes`` from the beginning."""
        with self.locate(path).open("rb") as stream:
            return stream.read(size_bytes)

    def text(self, path: str, findings: Findings) -> str | None:
        """Read a text file: UTF-8, LF line endings, no byte-order mark. Problems are reported with their line."""
        if self.size_bytes(path) > TEXT_BYTES:
            findings.error(path, f"is longer than {TEXT_BYTES} bytes, too long for a text.", "Shorten it.")
            return None
        data = self.locate(path).read_bytes()
        if data.startswith(b"\xef\xbb\xbf"):
            findings.info(path, "begins with a byte-order mark, which was dropped.", line=1)
            data = data[3:]
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            findings.error(path, f"is not UTF-8: byte 0x{data[error.start]:02x}.", "Save it as UTF-8.", line)
            return None
        return text.replace("\r\n", "\n")

    def put_derived(self, name: str, data: bytes) -> None:
        """Add a derived file under ``name``, replacing an existing one."""
        target = self.new_derived_path()
        target.write_bytes(data)
        self.put(name, target)

    def new_derived_path(self) -> Path:
        """A new path for a derived file; ``put`` it when it is written."""
        self._derived_dir.mkdir(parents=True, exist_ok=True)
        self._derived += 1
        return self._derived_dir / f"{self._derived:06d}"

    def put(self, name: str, real: Path) -> None:
        self._files[name] = real
        self._digests.pop(name, None)


_SCRIPTS = frozenset({"build", "run"})


def program_at(files: PackageFiles, path: str, language: str = "", entry_point: str = "") -> Program:
    name = posixpath.basename(path)
    if path in files:
        return Program(name, (FileRef(name, path),), language, entry_point)
    inside = tuple(FileRef(inner[len(path) + 1 :], inner) for inner in files.names(path))
    scripted = any(ref.name in _SCRIPTS for ref in inside)
    return Program(name, inside, language, entry_point, has_build_script=scripted)


def programs_in(files: PackageFiles, folder: str, *, skip: frozenset[str] = frozenset()) -> tuple[Program, ...]:
    """A program for every child of a folder."""
    children = [child for child in files.children(folder) if child not in skip and not child.startswith((".", "-"))]
    return tuple(program_at(files, f"{folder}/{child}") for child in children)
