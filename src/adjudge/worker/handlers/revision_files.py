"""The files of a revision that judging needs."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from adjudge.blobs.cache import BlobCache
from adjudge.packages.files import PackageFiles
from adjudge.store import Database
from adjudge.store.problems import commands as problem_commands


@asynccontextmanager
async def pinned_files(database: Database, cache: BlobCache, revision_id: str) -> AsyncIterator[PackageFiles]:
    """The files that the verdict depends on, pinned in the cache while judging."""
    digests = await database.read(lambda tx: problem_commands.list_judging_files(tx, revision_id))
    async with AsyncExitStack() as held:
        found = {path: await held.enter_async_context(cache.pin(digest)) for path, digest in digests.items()}
        yield PackageFiles(found, Path(held.enter_context(tempfile.TemporaryDirectory(prefix="adjudge-revision-"))))
