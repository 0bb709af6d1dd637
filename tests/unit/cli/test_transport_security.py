"""Servers on other machines without TLS or credentials are found in the settings."""

from __future__ import annotations

import pytest

from adjudge import settings as settings_source
from adjudge.cli.doctor import check_connections
from adjudge.cli.wiring.transport_security import find_unprotected, is_loopback
from adjudge.sandbox.doctor import HostCheckState


def found(**environ: str) -> dict[str, tuple[str, ...]]:
    """Service → what is missing."""
    settings = settings_source.load(environ={f"ADJUDGE_{name}": value for name, value in environ.items()})
    return {item.service: item.missing for item in find_unprotected(settings)}


@pytest.mark.parametrize(
    ("url", "missing"),
    [
        ("sqlite:///file.db", None),
        ("postgresql://adjudge@127.0.0.1/adjudge", None),
        ("postgresql://adjudge@[::1]:5432/adjudge", None),
        ("postgresql://adjudge@/adjudge?host=/run/postgresql", None),
        ("postgresql://adjudge:secret@db.example.org/adjudge?sslmode=verify-full", None),
        ("postgresql://adjudge@db.example.org/adjudge?sslmode=require&sslcert=/c.pem", None),
        ("postgresql://adjudge:secret@db.example.org/adjudge", ("TLS",)),
        ("postgresql://adjudge:secret@db.example.org/adjudge?sslmode=prefer", ("TLS",)),
        ("postgresql://adjudge@db.example.org/adjudge?sslmode=require", ("a password",)),
        ("postgresql://adjudge@db.example.org/adjudge", ("TLS", "a password")),
        ("postgresql://adjudge:secret@127.0.0.1:5432,10.0.0.7:5432/adjudge", ("TLS",)),
    ],
)
def test_postgresql(url: str, missing: tuple[str, ...] | None) -> None:
    assert found(DATABASE_URL=url).get("postgresql") == missing


@pytest.mark.parametrize(
    ("url", "missing"),
    [
        ("redis://localhost/0", None),
        ("unix:///run/redis.sock", None),
        ("rediss://:secret@redis.example.org/0", None),
        ("redis://redis.example.org/0", ("TLS", "a password")),
        ("redis://:secret@10.0.0.7/0", ("TLS",)),
        ("rediss://redis.example.org/0", ("a password",)),
    ],
)
def test_redis(url: str, missing: tuple[str, ...] | None) -> None:
    assert found(REDIS_URL=url).get("redis") == missing


@pytest.mark.parametrize(
    ("endpoint", "missing"),
    [
        ("", None),
        ("http://127.0.0.1:9000", None),
        ("https://s3.example.org:9000", None),
        ("http://s3.example.org:9000", ("TLS",)),
    ],
)
def test_s3(endpoint: str, missing: tuple[str, ...] | None) -> None:
    assert found(S3_BUCKET="adjudge", S3_ENDPOINT=endpoint).get("s3") == missing


@pytest.mark.parametrize(
    ("endpoints", "password", "missing"),
    [
        ("http://127.0.0.1:2379", "", None),
        ("https://a.example.org:2379, https://b.example.org:2379", "secret", None),
        ("https://a.example.org:2379,http://b.example.org:2379", "secret", ("TLS",)),
        ("https://a.example.org:2379", "", ("a password",)),
        ("http://127.0.0.1:2379,http://a.example.org:2379", "", ("TLS", "a password")),
    ],
)
def test_etcd(endpoints: str, password: str, missing: tuple[str, ...] | None) -> None:
    environ = {"ETCD_ENDPOINTS": endpoints, "ETCD_USER": "adjudge" if password else "", "ETCD_PASSWORD": password}
    assert found(**environ).get("etcd") == missing


def test_doctor_reports_each_server_without_secrets() -> None:
    environ = {
        "ADJUDGE_DATABASE_URL": "postgresql://adjudge:hunter2@db.example.org/adjudge",
        "ADJUDGE_REDIS_URL": "redis://:hunter2@redis.example.org/0",
        "ADJUDGE_S3_BUCKET": "adjudge",
        "ADJUDGE_S3_ENDPOINT": "http://s3.example.org:9000",
        "ADJUDGE_ETCD_ENDPOINTS": "http://etcd.example.org:2379",
    }
    checks = {check.name: check for check in check_connections(settings_source.load(environ=environ))}
    assert checks.keys() == {"postgresql", "redis", "s3", "etcd"}
    assert all(check.state is HostCheckState.DEGRADED and check.fix for check in checks.values())
    assert "hunter2" not in repr(checks)
    assert "db.example.org without TLS" in checks["postgresql"].observed


def test_loopback_hosts() -> None:
    assert all(map(is_loopback, ("", "localhost", "127.0.0.1", "127.8.9.1", "::1", "/run/postgresql")))
    assert not any(map(is_loopback, ("10.0.0.1", "db", "localhost.example.org", "0.0.0.0")))
