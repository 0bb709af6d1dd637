"""Settings reach the drivers."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.asyncio import Redis

from adjudge import settings as settings_source
from adjudge.blobs.s3 import S3Options
from adjudge.cli import doctor
from adjudge.cli.wiring import drivers
from adjudge.cli.wiring.drivers import open_blobs, open_for_leases, open_stream, warn_of_open_redis
from adjudge.cli.wiring.transport_security import redis_problem
from adjudge.domain.errors import InvalidInput
from adjudge.sandbox.doctor import DoctorReport, HostCheck
from adjudge.settings import Settings
from adjudge.store import open_database
from adjudge.store.engine.connect import ping
from adjudge.stream import MessageBody
from tests.support.log_capture import capture_logs
from tests.support.servers import RedisServer, S3Server


def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **variables: object) -> Settings:
    monkeypatch.chdir(tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    return settings_source.load()


async def test_stream_settings_reach_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer
) -> None:
    settings = load(
        tmp_path,
        monkeypatch,
        REDIS_URL=redis_server.url,
        ADJUDGE_ENVIRONMENT="wired",
        JOB_STREAM_MAXLEN=1_000,
        JOB_PAYLOAD_TTL_SEC=77,
        JOB_STREAM_GROUP="deepoj:workers",
    )
    raw = Redis.from_url(redis_server.url, decode_responses=True)
    async with open_stream(settings) as stream:
        for start in range(0, 3_000, 500):
            await stream.publish([MessageBody(f"j{start + n}", 2, "judge", None, {}) for n in range(500)])
        assert 1_000 <= (await stream.depths())[2] < 1_500, "about JOB_STREAM_MAXLEN messages are kept"
        (message,) = await stream.read(consumer="w", limit=1, wait_ms=0)
        assert message.payload_ref is not None
        assert 0 < await raw.ttl(message.payload_ref) <= 77
        groups = await raw.xinfo_groups("adjudge:wired:jobs:2")
        assert [group["name"] for group in groups] == ["deepoj:workers"]
    await raw.aclose()


@pytest.mark.slow
async def test_s3_settings_reach_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3_server: S3Server
) -> None:
    s3_server.create_bucket("wired")
    variables = {
        "ADJUDGE_S3_BUCKET": "wired",
        "ADJUDGE_S3_PREFIX": "some/prefix",
        "ADJUDGE_S3_ENDPOINT": s3_server.endpoint,
        "ADJUDGE_S3_REGION": "eu-central-1",
        "ADJUDGE_S3_ACCESS_KEY_ID": s3_server.access_key,
        "ADJUDGE_S3_SECRET_ACCESS_KEY": s3_server.secret_key,
    }
    async with open_blobs(load(tmp_path, monkeypatch, **variables)) as blobs:
        digest = await blobs.put(b"kept in S3")
        assert await blobs.exists(digest)
    variables["ADJUDGE_S3_PREFIX"] = "another/prefix"
    async with open_blobs(load(tmp_path, monkeypatch, **variables)) as elsewhere:
        assert not await elsewhere.exists(digest)


class Given:
    """Stands for the driver, and keeps what it was made with."""

    settings: S3Options

    def __init__(self, settings: S3Options) -> None:
        type(self).settings = settings

    async def close(self) -> None:
        pass


async def test_s3_region_and_limit_reach_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test server takes any region, so what the driver is given is looked at."""
    monkeypatch.setattr("adjudge.blobs.s3.S3BlobStore", Given)
    settings = load(
        tmp_path, monkeypatch, ADJUDGE_S3_BUCKET="b", ADJUDGE_S3_REGION="eu-central-1", ADJUDGE_S3_TIMEOUT_SEC=7
    )
    async with open_blobs(settings):
        assert (Given.settings.region, Given.settings.timeout_sec) == ("eu-central-1", 7.0)


async def test_without_a_bucket_blobs_are_in_the_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_blobs(load(tmp_path, monkeypatch, ADJUDGE_DATA_DIR=tmp_path / "data")) as blobs:
        await blobs.put(b"here")
    assert [path for path in (tmp_path / "data" / "blobs").rglob("*") if path.is_file()]


async def test_lease_timeout_leaves_time_for_two_retries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def opened(_: str, **options: float) -> object:
        limits.append(options["timeout_sec"])
        return open_database(f"sqlite:///{tmp_path}/own.db")

    monkeypatch.setattr(drivers, "open_database", opened)
    settings = load(tmp_path, monkeypatch, JOB_LEASE_SEC=15, JOB_HEARTBEAT_SEC=4)
    async with open_for_leases(settings) as database:
        await ping(database)
    assert settings.jobs.heartbeat_sec + 3 * limits[0] <= settings.jobs.lease_sec


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:6379/0",
        "redis://localhost/0",
        "redis://[::1]:6379/0",
        "unix:///run/redis.sock",
        "rediss://:secret@redis.example.org/0",
    ],
)
def test_local_or_protected_redis_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    settings = load(tmp_path, monkeypatch, REDIS_URL=url, ADJUDGE_ENVIRONMENT="prod", ADJUDGE_REDIS_SECURITY="require")
    assert redis_problem(settings) is None
    warn_of_open_redis(settings)


@pytest.mark.parametrize(
    ("url", "missing"),
    [
        ("redis://redis.example.org/0", "TLS and without a password"),
        ("redis://:secret@10.0.0.7/0", "TLS"),
        ("rediss://redis.example.org/0", "a password"),
    ],
)
def test_unprotected_remote_redis_is_refused_in_production(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, missing: str
) -> None:
    with capture_logs() as lines:
        warn_of_open_redis(load(tmp_path, monkeypatch, REDIS_URL=url))
    assert "redis_unprotected" in lines.getvalue()
    for variable, value in (("ADJUDGE_ENVIRONMENT", "prod"), ("ADJUDGE_REDIS_SECURITY", "require")):
        with monkeypatch.context() as patch, pytest.raises(InvalidInput, match=f"used without {missing}") as refused:
            warn_of_open_redis(load(tmp_path, patch, REDIS_URL=url, **{variable: value}))
        assert "secret" not in refused.value.message
    allowed = load(tmp_path, monkeypatch, REDIS_URL=url, ADJUDGE_ENVIRONMENT="prod", ADJUDGE_REDIS_SECURITY="allow")
    with capture_logs() as lines:
        warn_of_open_redis(allowed)
    assert lines.getvalue() == ""


@pytest.mark.parametrize(
    ("url", "states"), [("redis://redis.example.org/0", ["degraded"]), ("rediss://:secret@redis.example.org/0", [])]
)
async def test_doctor_names_an_unprotected_redis(monkeypatch: pytest.MonkeyPatch, url: str, states: list[str]) -> None:
    async def nothing(*_: object) -> list[HostCheck]:
        return []

    async def no_checks() -> DoctorReport:
        return DoctorReport(())

    monkeypatch.setenv("ADJUDGE_REDIS_URL", url)
    monkeypatch.setattr(doctor, "run_checks", no_checks)
    monkeypatch.setattr(doctor, "check_toolchains", nothing)
    found = await doctor._examine()
    assert [str(check.state) for check in found.checks if check.name == "redis"] == states
