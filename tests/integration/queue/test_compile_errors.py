"""A compile error is final: through worker and store it costs one attempt, and is recorded and reported once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.integration.queue.installation import Installation, import_problem, rows, submit, until_all_decided
from tests.support.servers import RedisServer

pytestmark = pytest.mark.slow

SOURCES = {
    "undeclared.cpp": b"int main() { return missing; }\n",
    "zero.cpp": b"int main() { return '\0\0\0' + missing; }\n",
    "syntax.py": b"print(\n",
    "zero.py": b"print(1)\0\n",
    "bytes.py": b"print('\xff')\n",
}


async def test_a_compile_error_has_one_attempt_one_terminal_row_and_one_event(
    postgres_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    installation = Installation(postgres_url, redis_server, tmp_path)
    paths = [tmp_path / name for name in SOURCES]
    for path in paths:
        path.write_bytes(SOURCES[path.name])
    async with installation.opened() as database:
        ids = await import_problem(database, installation.blobs)
        with installation.running("scheduler"), installation.running("worker", "--slots", "2"):
            await submit(database, installation.blobs, ids, paths)
            decided = await until_all_decided(database)
        attempts = await rows(database, "SELECT job_id AS owner FROM job_attempts")
        jobs = await rows(database, "SELECT id, status FROM jobs")
        ends = await rows(
            database, "SELECT job_id AS owner FROM job_status_log WHERE to_status IN ('succeeded', 'failed')"
        )
        events = await rows(
            database, "SELECT submission_id AS owner FROM submission_status_log WHERE verdict IS NOT NULL"
        )
        dead = await rows(database, "SELECT job_id FROM dead_letters")
    assert [row["verdict"] for row in decided] == ["CE"] * len(SOURCES)
    assert [row["status"] for row in jobs] == ["succeeded"] * len(SOURCES)
    for found in (attempts, ends, events):
        counts = Counter(row["owner"] for row in found)
        assert sorted(counts.values()) == [1] * len(SOURCES)
    assert not dead
