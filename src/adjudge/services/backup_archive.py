"""The file of a backup: a tar archive with a manifest, the database, and the blobs that the database refers to.

Members, in this order: ``manifest.json``, ``blobs.txt`` (digest and size of each blob), ``adjudge.db``, and
``blobs/DIGEST`` for each blob. The manifest has the digests of the second and third, so that everything can be verified
while it is read. Members are never extracted by their names.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import tarfile
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from adjudge.blobs.driver import BlobStore, Digest
from adjudge.domain.errors import BackupDamaged, Unavailable

FORMAT: Final = "adjudge-backup"
VERSION: Final = 1
_MANIFEST, _LIST, _DATABASE, _BLOBS = "manifest.json", "blobs.txt", "adjudge.db", "blobs/"
_CHUNK_BYTES: Final = 1 << 20
_IN_MEMORY_BYTES: Final = 8 << 20
_MANIFEST_BYTES_MAX: Final = 1 << 24
_DIGEST_DIGITS: Final = 64


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup contains."""

    format: str
    version: int
    created_at: str
    adjudge_version: str
    schema_revision: str
    database_bytes: int
    database_sha256: str
    blob_count: int
    blob_bytes: int
    blob_list_sha256: str
    missing: list[Digest]
    """Blobs that the database needs and that did not exist when the backup was made."""


@dataclass(frozen=True, slots=True)
class Member:
    """The database, or one blob, of a backup that is being read. Its bytes must be read before the next member."""

    digest: Digest
    is_database: bool
    chunks: AsyncGenerator[bytes]
    """Raises ``BackupDamaged`` after the last chunk if the bytes do not match the digest."""


class ArchiveWriter:
    """Writes a backup to a temporary file, which gets its name when it is complete and on the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._partial = path.with_name(f".{path.name}.partial")

    @contextmanager
    def open(self) -> Iterator[ArchiveWriter]:
        """Write in the block; nothing remains if it fails."""
        with self._translate_errors():
            try:
                descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it has secrets
                with os.fdopen(descriptor, "wb") as file:
                    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as self._tar:
                        yield self
                    file.flush()
                    os.fsync(file.fileno())
                self._partial.replace(self.path)
            finally:
                self._partial.unlink(missing_ok=True)

    async def add_head(self, manifest: Manifest, blob_list: bytes, database: Path) -> None:
        """Add the manifest, the list and the database."""
        document = json.dumps(asdict(manifest), indent=1).encode() + b"\n"
        for name, data in ((_MANIFEST, document), (_LIST, blob_list)):
            await asyncio.to_thread(self._add, name, io.BytesIO(data), len(data))
        with database.open("rb") as file:
            await asyncio.to_thread(self._add, _DATABASE, file, manifest.database_bytes)

    async def add_blob(self, blobs: BlobStore, digest: Digest) -> None:
        """Add a blob, verified."""
        with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES) as copy:
            async with aclosing(blobs.open(digest)) as chunks:
                async for chunk in chunks:
                    copy.write(chunk)
            size = copy.tell()
            copy.seek(0)
            await asyncio.to_thread(self._add, _BLOBS + digest, copy, size)

    def _add(self, name: str, file: Any, size: int) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = size, 0o600
        with self._translate_errors():
            self._tar.addfile(info, file)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unavailable(f"Cannot write the backup {self.path}: {error.strerror or error}.") from error


class ArchiveReader:
    """Reads a backup from the first member to the last, and verifies it."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        with self._translate_errors():
            self._tar: Any = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115  # the file is closed by its owner
            self.manifest = self._read_manifest()
            self._sizes = self._read_list()

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[ArchiveReader]:
        """Open a backup and read its manifest."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise BackupDamaged(f"{path}: cannot be opened: {error.strerror}.") from error
        with file:
            yield cls(path, file)

    async def members(self) -> AsyncGenerator[Member]:
        """The database, then each blob once; ``BackupDamaged`` if one is missing, unknown or damaged."""
        expected = set(self._sizes)
        database = await self._next()
        if database is None or database.name != _DATABASE:
            raise BackupDamaged(f"{self.path}: the database ({_DATABASE}) is missing.")
        yield self._member(database, self.manifest.database_sha256, self.manifest.database_bytes)
        while (info := await self._next()) is not None:
            digest = info.name.removeprefix(_BLOBS)
            if not info.name.startswith(_BLOBS) or digest not in expected:
                raise BackupDamaged(f"{self.path}: unexpected member {info.name!r}.")
            expected.remove(digest)
            yield self._member(info, digest, self._sizes[digest])
        if expected:
            raise BackupDamaged(
                f"{self.path}: {len(expected)} of {len(self._sizes)} files are missing, for example {min(expected)}; "
                "the backup is truncated."
            )

    def _member(self, info: tarfile.TarInfo, digest: Digest, size: int) -> Member:
        if info.size != size:
            raise BackupDamaged(f"{self.path}: {info.name} has {info.size} bytes instead of {size}.")
        return Member(digest, info.name == _DATABASE, self._chunks(info, digest))

    async def _chunks(self, info: tarfile.TarInfo, digest: Digest) -> AsyncGenerator[bytes]:
        total, file = sha256(), self._tar.extractfile(info)
        while file is not None and (chunk := await asyncio.to_thread(self._read, file)):
            total.update(chunk)
            yield chunk
        if total.hexdigest() != digest:
            raise BackupDamaged(
                f"{self.path}: {info.name} is damaged: its digest is {total.hexdigest()}, expected {digest}."
            )

    def _read(self, file: IO[bytes]) -> bytes:
        with self._translate_errors():
            return file.read(_CHUNK_BYTES)

    async def _next(self) -> tarfile.TarInfo | None:
        def following() -> tarfile.TarInfo | None:
            with self._translate_errors():
                info: tarfile.TarInfo | None = self._tar.next()
                self._tar.members = []  # it would remember every member
                return info

        return await asyncio.to_thread(following)

    def _read_manifest(self) -> Manifest:
        try:
            found = json.loads(self._small(_MANIFEST))
            if found["format"] != FORMAT or found["version"] != VERSION:
                raise BackupDamaged(
                    f"{self.path}: format {found['format']} version {found['version']} is not supported; use the "
                    "version of Adjudge that wrote it, or a newer one."
                )
            return Manifest(**found)
        except (ValueError, KeyError, TypeError) as error:
            raise BackupDamaged(f"{self.path}: {_MANIFEST} is damaged: {error}.") from error

    def _read_list(self) -> dict[Digest, int]:
        data = self._small(_LIST, limit=None)
        digest = sha256(data).hexdigest()
        if digest != self.manifest.blob_list_sha256:
            raise BackupDamaged(
                f"{self.path}: {_LIST} is damaged: its digest is {digest}, expected {self.manifest.blob_list_sha256}."
            )
        return {line[:_DIGEST_DIGITS]: int(line[_DIGEST_DIGITS:]) for line in data.decode().splitlines()}

    def _small(self, name: str, limit: int | None = _MANIFEST_BYTES_MAX) -> bytes:
        info = self._tar.next()
        file = None if info is None or info.name != name else self._tar.extractfile(info)
        if info is None or file is None or (limit is not None and info.size > limit):
            raise BackupDamaged(f"{self.path}: is no backup of Adjudge ({name} is missing).")
        data: bytes = file.read()
        return data

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except tarfile.TarError as error:
            raise BackupDamaged(f"{self.path}: damaged, truncated, or no backup of Adjudge ({error}).") from error
        except OSError as error:
            raise BackupDamaged(f"{self.path}: cannot be read: {error.strerror or error}.") from error


def blob_list(sizes: dict[Digest, int]) -> bytes:
    """The list of blobs with their sizes."""
    return "".join(f"{digest} {size}\n" for digest, size in sizes.items()).encode()


async def write_file(chunks: AsyncIterable[bytes], path: Path) -> None:
    """Write chunks to a new file that only its owner can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        async for chunk in chunks:
            await asyncio.to_thread(file.write, chunk)
        file.flush()
        os.fsync(file.fileno())
