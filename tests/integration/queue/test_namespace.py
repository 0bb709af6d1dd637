"""Two installations with different databases in one Redis namespace: the second is refused at start."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from adjudge import settings as settings_source
from adjudge.cli import EXIT_BAD_INPUT
from adjudge.cli.namespace import namespace_taken
from adjudge.domain.errors import InvalidInput
from adjudge.settings import Settings
from adjudge.store import Database, open_database
from adjudge.store.ops.installation import installation_id
from tests.support.log_capture import capture_logs
from tests.support.servers import RedisServer

_NUMBERS = count(1)


@pytest.fixture
def environment() -> str:
    return f"namespace-{os.getpid()}-{next(_NUMBERS)}"


@pytest.fixture
def settings(redis_server: RedisServer, environment: str) -> Settings:
    return _settings(redis_server.url, environment)


def _settings(redis_url: str, environment: str) -> Settings:
    return settings_source.load({"jobs.redis_url": redis_url, "server.environment": environment})


async def test_an_installation_keeps_its_id_however_many_processes_ask(store_url: str) -> None:
    async with open_database(store_url, migrate=False) as one, open_database(store_url, migrate=False) as two:
        ids = await asyncio.gather(*(installation_id(database) for database in (one, two, one, two)))
    assert len(set(ids)) == 1
    assert ids[0]


async def test_processes_of_one_installation_share_a_namespace(sqlite_url: str, settings: Settings) -> None:
    async with open_database(sqlite_url, migrate=False) as database:
        async with namespace_taken(settings, database), namespace_taken(settings, database):
            pass
        async with namespace_taken(settings, database):
            pass


async def test_another_installation_is_refused_until_it_takes_the_namespace_over(
    sqlite_url: str, tmp_path: Path, redis_server: RedisServer, settings: Settings, environment: str
) -> None:
    other = f"sqlite:///{tmp_path}/other.db"
    async with open_database(sqlite_url, migrate=False) as first, open_database(other) as second:
        async with namespace_taken(settings, first):
            pass
        with pytest.raises(InvalidInput, match="ADJUDGE_ENVIRONMENT") as refused:
            async with namespace_taken(settings, second):
                pytest.fail("it runs in the namespace of another installation")
        assert "ADJUDGE_REDIS_URL" in refused.value.message
        command = f"redis-cli DEL adjudge:{environment}:installation"
        assert command in refused.value.message
        async with namespace_taken(_settings(redis_server.url, f"{environment}-own"), second):
            pass

        client: Redis = Redis.from_url(redis_server.url)
        await client.delete(command.rsplit(maxsplit=1)[-1])
        await client.aclose()
        async with namespace_taken(settings, second):
            pass
        with pytest.raises(InvalidInput):
            await namespace_taken(settings, first).__aenter__()


@pytest.mark.slow
async def test_a_process_that_started_without_redis_is_ended_when_the_namespace_proves_to_be_anothers(
    sqlite_url: str, environment: str
) -> None:
    server = RedisServer().start()
    settings = _settings(server.url, environment)

    async def serve_meanwhile(database: Database) -> None:
        async with namespace_taken(settings, database), asyncio.timeout(120):
            server.revive()
            with BlockingRedis.from_url(server.url) as client:  # before the process can ask
                client.set(f"adjudge:{environment}:installation", "somebody-else")
            await asyncio.Event().wait()

    try:
        server.kill()
        async with open_database(sqlite_url, migrate=False) as database:
            with capture_logs() as log_lines:
                async with namespace_taken(settings, database):
                    assert "namespace_check_retrying" in log_lines.getvalue()  # it starts, and it can end again
            with pytest.raises(InvalidInput, match="another installation"):
                await serve_meanwhile(database)
    finally:
        server.stop()


@pytest.mark.slow
@pytest.mark.parametrize("role", ["api", "scheduler", "up", "worker"])
async def test_every_role_looks_at_the_namespace(
    role: str, redis_server: RedisServer, environment: str, tmp_path: Path
) -> None:
    client: Redis = Redis.from_url(redis_server.url)
    await client.set(f"adjudge:{environment}:installation", "somebody-else")
    await client.aclose()
    variables = {
        **os.environ,
        "ADJUDGE_DATABASE_URL": f"sqlite:///{tmp_path}/judge.db",
        "ADJUDGE_REDIS_URL": redis_server.url,
        "ADJUDGE_ENVIRONMENT": environment,
        "ADJUDGE_DATA_DIR": str(tmp_path),
        "ADJUDGE_PORT": "0",
    }
    argv = [sys.executable, "-m", "adjudge", role]
    ended = await asyncio.to_thread(
        subprocess.run, argv, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode == EXIT_BAD_INPUT, ended.stderr
    assert "is used by another installation (somebody-else;" in ended.stderr
    assert "Traceback" not in ended.stderr
