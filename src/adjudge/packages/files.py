"""The files of an opened package: a flat map from safe names to real files.

What belongs here: looking names up, reading, digesting, replacing a file by a derived one. What does not: deciding
which names are safe (``archive``). A name is relative, ``/``-separated and never leaves the package; the real file
behind it may be anywhere (an extracted object, a link's target), so nothing may guess one from the other.
"""

from __future__ import annotations

import hashlib
import posixpath
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from adjudge.domain.errors import NotFound
from adjudge.domain.programs import FileRef, Program
from adjudge.packages.findings import Findings

TEXT_BYTES = 8 * 1024 * 1024
"""The longest file that is read whole as text: metadata, sources, statements. Test data is never read whole."""
_CHUNK = 1024 * 1024


class PackageFiles:
    """The contents of one package. It satisfies ``domain.programs.ProblemFiles``."""

    def __init__(self, found: dict[str, Path], derived_dir: Path) -> None:
        self._files = found
        self._derived_dir = derived_dir
        self._digests: dict[str, str] = {}
        self._order: list[bytes] = []
        self._derived = 0

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def names(self, under: str = "") -> list[str]:
        """List every file below a folder, in byte order."""
        names = self._sorted()
        if not under:
            return [name.decode() for name in names]
        prefix = f"{under}/".encode()
        # No name holds the byte 0xff: it never occurs in UTF-8.
        return [name.decode() for name in names[bisect_left(names, prefix) : bisect_left(names, prefix + b"\xff")]]

    def _sorted(self) -> list[bytes]:
        """Keep all names in byte order, so that a folder is one slice of them however many files there are."""
        if len(self._order) != len(self._files):
            self._order = sorted(name.encode() for name in self._files)
        return self._order

    def has_folder(self, name: str) -> bool:
        """Whether any file is below ``name``."""
        names, prefix = self._sorted(), f"{name}/".encode()
        at = bisect_left(names, prefix)
        return at < len(names) and names[at].startswith(prefix)

    def children(self, folder: str) -> list[str]:
        """List the direct children of a folder by base name, files and folders, in byte order."""
        skip = len(folder) + 1 if folder else 0
        steps = {name[skip:].partition("/")[0] for name in self.names(folder)}
        return sorted(steps, key=str.encode)

    def locate(self, path: str) -> Path:
        """Find the real file behind a name."""
        try:
            return self._files[path]
        except KeyError:
            raise NotFound("package_file", path) from None

    def size_bytes(self, path: str) -> int:
        """Return how long the file is."""
        return self.locate(path).stat().st_size

    def sha256(self, path: str) -> str:
        """Return the file's digest; each file is read once for it."""
        if path not in self._digests:
            digest = hashlib.sha256()
            for chunk in self.chunks(path):
                digest.update(chunk)
            self._digests[path] = digest.hexdigest()
        return self._digests[path]

    def chunks(self, path: str) -> Iterator[bytes]:
        """Read the file piece by piece."""
        with self.locate(path).open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk

    def head(self, path: str, size_bytes: int) -> bytes:
        """Read at most so many bytes of the file's beginning."""
        with self.locate(path).open("rb") as stream:
            return stream.read(size_bytes)

    def text(self, path: str, findings: Findings) -> str | None:
        """Read a text: UTF-8, line ends as LF, no byte-order mark. What it is not is named with its line."""
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
        """Put a file made from the package's own under ``name``, over what was there."""
        target = self.new_derived_path()
        target.write_bytes(data)
        self.put(name, target)

    def new_derived_path(self) -> Path:
        """Name a fresh place for a derived file; ``put`` it when it is written."""
        self._derived_dir.mkdir(parents=True, exist_ok=True)
        self._derived += 1
        return self._derived_dir / f"{self._derived:06d}"

    def put(self, name: str, real: Path) -> None:
        """Let ``name`` mean the file ``real`` from now on."""
        self._files[name] = real
        self._digests.pop(name, None)


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
