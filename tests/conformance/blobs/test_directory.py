"""The directory driver: killed puts, repair, renewal, clean-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.domain.errors import Unavailable

_DIE_AT = """
import asyncio, os, sys
from pathlib import Path
from adjudge.blobs import chunked_io
from adjudge.blobs.directory import DirectoryBlobStore

def die(*_):
    os.kill(os.getpid(), 9)

setattr(*{"settle": (chunked_io, "_settle"), "publish": (DirectoryBlobStore, "_publish")}[sys.argv[2]], die)
asyncio.run(DirectoryBlobStore(Path(sys.argv[1])).put(b"x" * 3_000_000))
"""


@pytest.mark.parametrize("point", ["settle", "publish"])
async def test_killed_put_leaves_no_blob(tmp_path: Path, point: str) -> None:
    blobs = DirectoryBlobStore(tmp_path)
    done = subprocess.run([sys.executable, "-c", _DIE_AT, str(tmp_path), point], check=False, timeout=60)
    assert done.returncode == -9
    assert [info async for info in blobs.list()] == []
    assert len(list((tmp_path / "partial").iterdir())) == 1
    assert await blobs.delete_partial_uploads(older_than_sec=3600) == 0
    assert await blobs.delete_partial_uploads(older_than_sec=-1) == 1
    assert list((tmp_path / "partial").iterdir()) == []


async def test_put_repairs_corrupt_blob(tmp_path: Path) -> None:
    blobs = DirectoryBlobStore(tmp_path)
    digest = await blobs.put(b"sound")
    path = tmp_path / digest[:2] / digest[2:4] / digest
    path.chmod(0o644)
    path.write_bytes(b"rotten")
    await blobs.put(b"sound")
    assert [piece async for piece in blobs.open(digest)] == [b"sound"]


async def test_put_renews_old_blob(tmp_path: Path) -> None:
    blobs = DirectoryBlobStore(tmp_path)
    digest = await blobs.put(b"old")
    path = tmp_path / digest[:2] / digest[2:4] / digest
    os.utime(path, (1, 1))
    assert (await blobs.stat(digest)).stored_at_us == 1_000_000
    await blobs.put(b"old")
    assert not await blobs.delete(digest, stored_before_us=10_000_000)


async def test_blob_files_are_read_only(tmp_path: Path) -> None:
    digest = await DirectoryBlobStore(tmp_path).put(b"x")
    assert (tmp_path / digest[:2] / digest[2:4] / digest).stat().st_mode & 0o222 == 0


async def test_unusable_folder_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unavailable, match="cannot be used"):
        await DirectoryBlobStore(tmp_path / "file").put(b"x")
