"""The S3 driver: outages, wrong keys, missing bucket, interrupted responses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import obstore
import pytest

from adjudge.blobs.s3 import S3BlobStore, S3Options
from adjudge.domain.errors import InvalidInput, Unavailable
from tests.conformance.blobs.conftest import S3Side
from tests.support.server_process import free_port

MIB = 1 << 20


@asynccontextmanager
async def breaking_proxy(endpoint: str, after_bytes: int, times: int) -> AsyncIterator[str]:
    """Pass requests on to ``endpoint``, and cut the first ``times`` large answers off."""
    target, cuts, serving = urlsplit(endpoint), [after_bytes] * times, set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(target.hostname, target.port)
        upwards = asyncio.create_task(_pass_on(reader, far_writer, None))
        try:
            await _pass_on(far_reader, writer, cuts)
        finally:
            upwards.cancel()
            await asyncio.wait({upwards})
            for side in (writer, far_writer):
                side.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cuts: list[int] | None) -> None:
    passed = 0
    while piece := await reader.read(65536):
        passed += len(piece)
        if cuts and passed > cuts[0]:
            cuts.pop(0)
            return
        writer.write(piece)
        await writer.drain()


@pytest.fixture
def fast(s3_side: S3Side) -> S3Options:
    return replace(s3_side.settings, retry_sec=0.5)


async def test_interrupted_download_is_resumed(s3_side: S3Side, fast: S3Options) -> None:
    content = os.urandom(6 * MIB)
    digest = await s3_side.blobs.put(content)
    async with breaking_proxy(s3_side.settings.endpoint or "", after_bytes=2 * MIB, times=2) as endpoint:
        blobs = S3BlobStore(replace(fast, endpoint=endpoint))
        assert b"".join([piece async for piece in blobs.open(digest)]) == content


async def test_s3_down_is_unavailable(fast: S3Options) -> None:
    blobs = S3BlobStore(replace(fast, endpoint=f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(Unavailable, match="is unavailable"):
        await blobs.put(b"x")


async def test_wrong_keys_error_does_not_show_keys(fast: S3Options) -> None:
    blobs = S3BlobStore(replace(fast, secret_access_key="wr0ng-secret"))
    with pytest.raises(Unavailable, match="access denied") as caught:
        await blobs.put(b"x")
    assert "wr0ng-secret" not in str(caught.value)
    assert "wr0ng-secret" not in repr(fast)
    with pytest.raises(Unavailable, match="access denied") as caught:
        _ = [info async for info in blobs.list()]
    assert "wr0ng-secret" not in str(caught.value)


async def test_missing_bucket_is_named_in_error(fast: S3Options) -> None:
    blobs = S3BlobStore(replace(fast, bucket="no-such-bucket"))
    with pytest.raises(Unavailable, match="no-such-bucket"):
        await blobs.put(b"x")
    with pytest.raises(Unavailable, match=r"no bucket .*no-such-bucket: create it"):
        _ = [info async for info in blobs.list()]


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "http://", "::bad", "http://127.0.0.1:99999", "ftp://host"])
def test_invalid_endpoint_is_rejected(endpoint: str) -> None:
    with pytest.raises(InvalidInput, match="s3_endpoint"):
        S3BlobStore(S3Options("bucket", endpoint=endpoint))


def test_empty_bucket_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="s3_bucket"):
        S3BlobStore(S3Options(bucket=""))


async def test_list_ignores_foreign_keys(s3_side: S3Side) -> None:
    await obstore.put_async(s3_side.raw, "ab/cd/readme.txt", b"not a blob")
    digest = await s3_side.blobs.put(b"a blob")
    assert [info.digest async for info in s3_side.blobs.list()] == [digest]


async def test_recent_blob_is_not_uploaded_again(s3_side: S3Side) -> None:
    digest = await s3_side.blobs.put(b"once")
    stored = await s3_side.blobs.stat(digest)
    await s3_side.overwrite(digest, b"marked")
    await s3_side.blobs.put(b"once")
    assert (await s3_side.blobs.stat(digest)).size_bytes == len(b"marked")
    assert stored.size_bytes == len(b"once")
