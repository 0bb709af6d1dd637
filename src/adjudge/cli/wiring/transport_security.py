"""Finds servers on other machines that are used without TLS or without credentials. Nothing is connected to."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, urlsplit

from adjudge.settings import Settings

_POSTGRES_TLS: Final = frozenset({"require", "verify-ca", "verify-full"})
"""Modes that never fall back to an unencrypted connection."""


@dataclass(frozen=True, slots=True)
class UnprotectedServer:
    """A server on another machine whose connection lacks something."""

    service: str
    setting: str
    hosts: tuple[str, ...]
    missing: tuple[str, ...]
    """``TLS``, ``a password``, or both."""
    consequence: str
    fix: str


def find_unprotected(settings: Settings) -> list[UnprotectedServer]:
    """The servers of the settings that are not local and lack TLS or credentials."""
    return [*_postgres(settings), *_redis(settings), *_s3(settings), *_etcd(settings)]


def redis_problem(settings: Settings) -> str | None:
    """Why Redis is not protected; None if it is local, or has TLS and a password."""
    for found in _redis(settings):
        return (
            f"{found.setting}: Redis at {found.hosts[0]} is used without {' and without '.join(found.missing)}: "
            f"{found.consequence} {found.fix}"
        )
    return None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine: a loopback address, a socket file, or no host."""
    if not host or host == "localhost" or host.startswith("/"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _remote(hosts: Sequence[str]) -> tuple[str, ...]:
    return tuple(host for host in hosts if not is_loopback(host))


def _missing(*, has_tls: bool, has_password: bool) -> tuple[str, ...]:
    return (*(() if has_tls else ("TLS",)), *(() if has_password else ("a password",)))


def _postgres(settings: Settings) -> Iterator[UnprotectedServer]:
    text = settings.database.url.reveal()
    if not text.startswith(("postgresql://", "postgres://")):
        return
    url = urlsplit(text)
    credentials, _, names = url.netloc.rpartition("@")
    query = {name: values[-1] for name, values in parse_qs(url.query).items()}
    names = names or query.get("host", "")
    hosts = _remote([_host(name) for name in names.split(",")])
    has_certificate = "sslcert" in query
    missing = _missing(
        has_tls=query.get("sslmode", query.get("ssl", "")) in _POSTGRES_TLS,
        has_password=":" in credentials or "password" in query or "passfile" in query or has_certificate,
    )
    if hosts and missing:
        yield UnprotectedServer(
            "postgresql",
            "database.url",
            hosts,
            missing,
            "Anyone who reads the network reads submissions and password hashes, and may change what is sent.",
            "Give postgresql://USER:PASSWORD@HOST/NAME?sslmode=verify-full&sslrootcert=FILE.",
        )


def _host(name: str) -> str:
    """The host of ``HOST:PORT`` or ``[ADDRESS]:PORT``."""
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]


def _redis(settings: Settings) -> Iterator[UnprotectedServer]:
    url = urlsplit(settings.jobs.redis_url.reveal())
    hosts = _remote([url.hostname or ""]) if url.scheme != "unix" else ()
    missing = _missing(has_tls=url.scheme == "rediss", has_password=bool(url.password))
    if hosts and missing:
        yield UnprotectedServer(
            "redis",
            "jobs.redis_url",
            hosts,
            missing,
            "anyone who reaches it can read and forge messages about jobs.",
            "Give rediss://USER:PASSWORD@HOST:PORT/NUMBER, or set "
            "ADJUDGE_REDIS_SECURITY=allow if its network is private.",
        )


def _s3(settings: Settings) -> Iterator[UnprotectedServer]:
    endpoint = urlsplit(settings.files.s3_endpoint)
    hosts = _remote([endpoint.hostname or ""])
    if settings.files.s3_bucket and hosts and endpoint.scheme == "http":
        yield UnprotectedServer(
            "s3",
            "files.s3_endpoint",
            hosts,
            ("TLS",),
            "Anyone who reads the network reads test data and sources.",
            "Give https://HOST:PORT; the certificate must be signed by an authority that the machine trusts.",
        )


def _etcd(settings: Settings) -> Iterator[UnprotectedServer]:
    endpoints = [urlsplit(item.strip()) for item in settings.worker.etcd_endpoints.split(",") if item.strip()]
    remote = [item for item in endpoints if not is_loopback(item.hostname or "")]
    missing = _missing(
        has_tls=all(item.scheme == "https" for item in remote),
        has_password=bool(settings.worker.etcd_user and settings.worker.etcd_password.reveal()),
    )
    if remote and missing:
        yield UnprotectedServer(
            "etcd",
            "worker.etcd_endpoints",
            tuple(item.hostname or "" for item in remote),
            missing,
            "Anyone who reaches it can register and remove workers.",
            "Give https://HOST:2379 and set ADJUDGE_ETCD_USER and ADJUDGE_ETCD_PASSWORD.",
        )
