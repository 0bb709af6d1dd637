"""Opens a package: a folder or a ZIP, both untrusted.

Rejects names and links that leave the package, devices, encrypted or duplicate entries, and archives that unpack to
more than ``ArchiveLimits`` together with the archives inside them. Links inside the tree are followed; in a folder of
the operator also those that lead outside, as ``Links`` allows. ZIP entries are extracted under numbers, so their names
never reach the file system; bytes are counted while unpacking, not taken from the archive's headers.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from adjudge.domain.errors import NotFound
from adjudge.packages.archive_limits import ArchiveLimits, UnpackBudget
from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import package_error
from adjudge.packages.safe_paths import is_junk, link_target, safe_path

_CHUNK = 256 * 1024
_MAX_LINKS = 40
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)
"""What the standard library raises for invalid archives; RuntimeError means a missing password."""


class Links(StrEnum):
    """Which links in a folder are followed. Links in an archive never lead out of it."""

    INSIDE = "inside"
    """Links that stay in the package."""
    REPOSITORY = "repository"
    """Links that stay in the Git repository of the folder: contest repositories share headers."""
    ANYWHERE = "anywhere"
    """All links. For trusted folders only: a link may point to any readable file."""


@contextmanager
def open_package(
    source: Path, limits: ArchiveLimits | None = None, scratch: Path | None = None, links: Links = Links.INSIDE
) -> Iterator[PackageFiles]:
    """Open a package while the block runs; unpacked and derived files are deleted afterwards."""
    limits = limits or ArchiveLimits()
    if not source.exists():
        raise NotFound("package", str(source))
    work = Path(tempfile.mkdtemp(prefix="adjudge-package-", dir=scratch))
    try:
        if source.is_dir():
            budget, result = UnpackBudget(limits), _from_folder(source, limits, links)
        else:
            budget = UnpackBudget(limits, source.stat().st_size)
            result = _from_zip(source, work / "objects", budget)
        yield PackageFiles(_without_top_folder(result), work / "derived", budget)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def open_inner_package(files: PackageFiles, name: str) -> PackageFiles:
    """Open an archive inside the package as a package of its own; its files are deleted with those of the outer one."""
    work = files.new_derived_path()
    result = _from_zip(files.locate(name), work / "objects", files.budget)
    return PackageFiles(_without_top_folder(result), work / "derived", files.budget)


def mount_archive(files: PackageFiles, name: str) -> None:
    """Open an archive inside the package: its entries appear below its name, ``tests.zip/1.in``."""
    objects = files.new_derived_path()
    inner = _from_zip(files.locate(name), objects, files.budget)
    for entry, real in inner.items():
        files.put(f"{name}/{entry}", real)


def _without_top_folder(result: dict[str, Path]) -> dict[str, Path]:
    """Drop a single top-level folder, as in archives of a folder; ``data`` alone is not dropped."""
    tops = {name.partition("/")[0] for name in result}
    if len(tops) != 1 or any("/" not in name for name in result) or tops & {"data", "tests", "input"}:
        return result
    top = tops.pop()
    return {name[len(top) + 1 :]: real for name, real in result.items()}


# ---- folders


def _from_folder(root: Path, limits: ArchiveLimits, links: Links) -> dict[str, Path]:
    real_root = root.resolve(strict=True)
    bounds = _Bounds(real_root, links)
    result: dict[str, Path] = {}
    pending: list[tuple[str, Path, tuple[Path, ...]]] = [("", real_root, (real_root,))]
    total = 0
    while pending:
        prefix, folder, chain = pending.pop()
        for entry in sorted(folder.iterdir()):
            name = f"{prefix}{entry.name}"
            if is_junk(name):
                continue
            if safe_path(name) != name:
                raise package_error(name, "has a backslash in its name.", "Rename it.")
            real = bounds.resolved(name, entry)
            mode = real.stat().st_mode
            if stat.S_ISDIR(mode):
                if real in chain:
                    raise package_error(name, "is a link to a folder that it is in.", "Remove the link.")
                pending.append((f"{name}/", real, (*chain, real)))
            elif stat.S_ISREG(mode):
                result[name] = real
                total += real.stat().st_size
                _bound(name, len(result), total, real.stat().st_size, limits)
            else:
                raise package_error(name, "is neither a file nor a folder.", "Remove it.")
    return result


class _Bounds:
    """Where links in a folder may lead."""

    def __init__(self, root: Path, links: Links) -> None:
        self._links = links
        self._within = root
        if links is Links.REPOSITORY:
            repositories = (folder for folder in (root, *root.parents) if (folder / ".git").exists())
            self._within = next(repositories, root)

    def resolved(self, name: str, entry: Path) -> Path:
        """Resolve an entry; reject it if it is out of bounds."""
        try:
            real = entry.resolve(strict=True)
        except (OSError, RuntimeError):
            raise package_error(name, "is a dangling symbolic link.", "Remove it, or add what it points to.") from None
        if self._links is Links.ANYWHERE:
            return real
        # Files of .git may contain credentials.
        if not real.is_relative_to(self._within) or ".git" in real.relative_to(self._within).parts:
            fix = "Replace it by the file it points to"
            if self._links is Links.REPOSITORY:
                fix += ", or add --follow-links if you trust the package"
            raise package_error(name, "is a link that leaves the package.", f"{fix}.")
        return real


def _bound(name: str, entries: int, total: int, size: int, limits: ArchiveLimits) -> None:
    if entries > limits.entries:
        raise package_error("", f"has more than {limits.entries} files.", "Remove what the problem does not need.")
    if size > limits.file_bytes:
        raise package_error(name, f"is larger than {limits.file_bytes} bytes.", "Make it smaller.")
    if total > limits.total_bytes:
        raise package_error("", f"is larger than {limits.total_bytes} bytes in all.", "Make the test data smaller.")


# ---- archives


def _from_zip(source: Path, objects: Path, budget: UnpackBudget) -> dict[str, Path]:
    objects.mkdir(parents=True)
    try:
        with zipfile.ZipFile(source) as archive:
            return _unpacked(archive, source.stat().st_size, objects, budget)
    except _DAMAGED as error:
        raise package_error(source.name, f"is not a valid ZIP archive: {error}.", "Pack the package again.") from error


def _unpacked(archive: zipfile.ZipFile, packed_bytes: int, objects: Path, budget: UnpackBudget) -> dict[str, Path]:
    entries = _entries(archive, budget.limits)
    budget.take_entries(len(entries))
    limits, ceiling = budget.limits, budget.limits.unpacked_bytes(packed_bytes)
    result: dict[str, Path] = {}
    links: dict[str, str] = {}
    total = 0
    for number, (name, entry) in enumerate(entries.items()):
        mode = entry.external_attr >> 16
        if stat.S_ISLNK(mode):
            links[name] = _link_text(archive, entry, name)
            continue
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise package_error(name, "is neither a file nor a folder.", "Remove it.")
        target = objects / f"{number:06d}"
        total += _unpack(archive, entry, target, min(limits.file_bytes, ceiling - total), name, budget=budget)
        target.chmod(0o755 if mode & 0o111 else 0o644)
        result[name] = target
    result = _with_links(result, links, limits)
    budget.take_entries(max(0, len(result) - len(entries)))
    return result


def _entries(archive: zipfile.ZipFile, limits: ArchiveLimits) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        if entry.is_dir():
            continue
        name = safe_path(_decoded(entry))
        if not name or is_junk(name):
            continue
        if entry.flag_bits & 0x1:
            raise package_error(name, "is encrypted.", "Pack the package without a password.")
        if name in entries:
            raise package_error(name, "is in the archive twice.", "Pack the package again.")
        entries[name] = entry
        if len(entries) > limits.entries:
            raise package_error("", f"has more than {limits.entries} files.", "Remove what the problem does not need.")
    for name in entries:
        steps = name.split("/")
        for depth in range(1, len(steps)):
            if "/".join(steps[:depth]) in entries and not _is_link(entries["/".join(steps[:depth])]):
                raise package_error("/".join(steps[:depth]), "is both a file and a folder.", "Pack the package again.")
    return entries


def _is_link(entry: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(entry.external_attr >> 16)


def _decoded(entry: zipfile.ZipInfo) -> str:
    """Undo the code page 437 guess if the bytes are UTF-8: many archivers do not set the flag."""
    if entry.flag_bits & 0x800 or entry.filename.isascii():
        return entry.filename
    try:
        return entry.filename.encode("cp437").decode()
    except UnicodeError:
        return entry.filename


def _link_text(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> str:
    with archive.open(entry) as stream:
        data = stream.read(4097)
    if len(data) > 4096:
        raise package_error(name, "is a link with an impossible target.", "Remove it.")
    return data.decode(errors="surrogateescape")


def _unpack(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    target: Path,
    allowed_bytes: int,
    name: str,
    *,
    budget: UnpackBudget,
) -> int:
    written = 0
    with archive.open(entry) as stream, target.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            written += len(chunk)
            budget.take_bytes(len(chunk), name)
            if written > allowed_bytes:
                raise package_error(name, "unpacks to more than a package may.", "Make the test data smaller.")
            out.write(chunk)
    return written


def _with_links(found: dict[str, Path], links: dict[str, str], limits: ArchiveLimits) -> dict[str, Path]:
    """Add what links point to: a file under a second name, or the files of a folder under a second folder."""
    targets = {name: link_target(name, target) for name, target in links.items()}
    result = dict(found)
    for name in targets:
        target = _followed(name, targets)
        if target in found:
            result[name] = found[target]
            continue
        prefix = f"{target}/" if target else ""
        if f"{name}/".startswith(prefix):
            raise package_error(name, "is a link to a folder that it is in.", "Remove the link.")
        inner = {f"{name}/{other[len(prefix) :]}": real for other, real in found.items() if other.startswith(prefix)}
        if not inner:
            raise package_error(name, "is a dangling symbolic link.", "Remove it, or add what it points to.")
        result.update(inner)
        if len(result) > limits.entries:
            raise package_error("", f"has more than {limits.entries} files.", "Remove what the problem does not need.")
    return result


def _followed(name: str, targets: dict[str, str]) -> str:
    """Follow links to a name that is not a link, including folders on the path."""
    for _ in range(_MAX_LINKS):
        steps = name.split("/")
        for depth in range(len(steps), 0, -1):
            prefix = "/".join(steps[:depth])
            if prefix in targets:
                name = "/".join(step for step in (targets[prefix], *steps[depth:]) if step)
                break
        else:
            return name
    raise package_error(name, "is a link that leads back to itself.", "Remove it.")
