"""Fixtures that every suite may use: the private servers, a fresh database per test, a store on either database.

Servers start when the first test asks for one and stop at the end of the session. Where a server is missing and cannot
be installed a test is skipped with the reason, except with ``CI=true``: there it fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.support.databases import PostgresDatabases
from tests.support.server_process import ServerNotInstalled, ServerProcess
from tests.support.servers import Browser, EtcdServer, PostgresServer, PrometheusServer, RedisServer, S3Server
from tests.support.store_fixtures import (
    postgres_store,
    postgres_url,
    shared_postgres_url,
    sqlite_store,
    sqlite_template,
    sqlite_url,
    store,
    store_url,
)

__all__ = [
    "postgres_store",
    "postgres_url",
    "shared_postgres_url",
    "sqlite_store",
    "sqlite_template",
    "sqlite_url",
    "store",
    "store_url",
]

pytest_plugins = ["tests.support.xdist_scheduling", "tests.support.order"]

# An unprivileged user may have no cgroup, and trusts the programs of the tests.
os.environ.setdefault("ADJUDGE_JUDGE_ALLOW_WITHOUT_CGROUP", "true")

# Properties are tried on the same examples each time, and no example has a time limit: nothing fails by chance.
# Others are looked for with ``pytest --hypothesis-profile=explore``.
_TIMELESS = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", _TIMELESS, derandomize=False)
settings.register_profile("same", _TIMELESS, derandomize=True)
settings.load_profile("same")

S = TypeVar("S", bound=ServerProcess)


def _running(service: S) -> Iterator[S]:
    try:
        service.start()
    except ServerNotInstalled as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing), pytrace=False)
        pytest.skip(str(missing))
    try:
        yield service
    finally:
        service.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A private PostgreSQL, started once. Tests that write use ``postgres_database``."""
    yield from _running(PostgresServer())


@pytest.fixture
def start_prometheus() -> Iterator[Callable[[Mapping[str, str]], PrometheusServer]]:
    """Starts private Prometheus servers, each with its own configuration files."""
    with ExitStack() as stack:
        running = contextmanager(_running)
        yield lambda files: stack.enter_context(running(PrometheusServer(files)))


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A private Redis, started once."""
    yield from _running(RedisServer())


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A private S3, started once. Each test takes a prefix of its own."""
    yield from _running(S3Server())


@pytest.fixture(scope="session")
def etcd_server() -> Iterator[EtcdServer]:
    """A private etcd, started once. Each test takes a prefix of its own."""
    yield from _running(EtcdServer())


@pytest.fixture(scope="session")
def browser_server() -> Iterator[Browser]:
    """A private Chromium, started once. Each test takes a context of its own."""
    yield from _running(Browser())


@pytest.fixture(scope="session")
def postgres_databases(postgres_server: PostgresServer) -> PostgresDatabases:
    """Where fresh databases come from; its template is migrated once."""
    return PostgresDatabases(postgres_server)


@pytest.fixture
def postgres_database(postgres_databases: PostgresDatabases) -> Iterator[str]:
    """The URL of a database of this test's own, with the schema in place."""
    with postgres_databases.fresh() as url:
        yield url
