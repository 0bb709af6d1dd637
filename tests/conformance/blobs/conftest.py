"""The blob stores under test: a folder and S3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from adjudge.blobs import BlobStore, Digest
from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.blobs.s3 import S3BlobStore, S3Options
from tests.support.servers import S3Server

_PREFIXES = count(1)
BUCKET = "adjudge"


class BlobDriverFixture(ABC):
    """One file store, and the damage that tests do to it."""

    blobs: BlobStore

    @abstractmethod
    def open(self) -> BlobStore:
        """Open it once more, as another process would."""

    @abstractmethod
    async def overwrite(self, digest: Digest, content: bytes) -> None:
        """Put other bytes where the blob's are."""


class DirectorySide(BlobDriverFixture):
    def __init__(self, root: Path) -> None:
        self.root = root
        self.blobs = self.open()

    def open(self) -> DirectoryBlobStore:
        return DirectoryBlobStore(self.root)

    async def overwrite(self, digest: Digest, content: bytes) -> None:
        path = self.root / digest[:2] / digest[2:4] / digest
        path.chmod(0o644)
        path.write_bytes(content)


class S3Side(BlobDriverFixture):
    def __init__(self, server: S3Server) -> None:
        self.settings = S3Options(
            bucket=BUCKET,
            prefix=f"test/{next(_PREFIXES)}",
            endpoint=server.endpoint,
            access_key_id=server.access_key,
            secret_access_key=server.secret_key,
            retry_sec=2.0,
        )
        self.raw = S3Store(
            BUCKET,
            prefix=self.settings.prefix,
            endpoint=server.endpoint,
            region="us-east-1",
            access_key_id=server.access_key,
            secret_access_key=server.secret_key,
            client_options={"allow_http": True},
        )
        self.blobs = self.open()

    def open(self) -> S3BlobStore:
        return S3BlobStore(self.settings)

    async def overwrite(self, digest: Digest, content: bytes) -> None:
        await obstore.put_async(self.raw, f"{digest[:2]}/{digest[2:4]}/{digest}", content)


@pytest.fixture(scope="session")
def s3_bucket(s3_server: S3Server) -> S3Server:
    s3_server.create_bucket(BUCKET)
    return s3_server


@pytest.fixture
def s3_side(s3_bucket: S3Server) -> S3Side:
    return S3Side(s3_bucket)


@pytest.fixture(params=["directory", "s3"])
async def side(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobDriverFixture]:
    side: BlobDriverFixture
    if request.param == "directory":
        side = DirectorySide(tmp_path / "blobs")
    else:
        side = S3Side(request.getfixturevalue("s3_bucket"))
    yield side
    await side.blobs.close()
