"""The registry in etcd: one key per process, bound to a lease.

Uses the v3 JSON gateway over HTTP, so no other client is needed. Keys and values are base64, 64-bit numbers are
strings, and fields that are zero or false are omitted.
"""

from __future__ import annotations

import asyncio
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, Final

import httpx

from adjudge.domain.errors import InternalFault, InvalidInput, Unavailable
from adjudge.domain.keepalive import SOCKET_OPTIONS
from adjudge.domain.reactions import Reaction, reaction_to
from adjudge.registry.driver import LEASE_SEC, LiveProcess, ProcessHealth, ProcessInfo, ProcessRole, check_process_name
from adjudge.registry.http_failures import REACTIONS

_TIMEOUT_SEC: Final = 5.0
"""Timeout of one endpoint, including login."""
_NOT_FOUND: Final = 5
"""gRPC code of the gateway for an expired lease."""
_MOST_PORT: Final = 65_535
_FIELDS: Final = frozenset(field.name for field in fields(ProcessInfo))
_NOT_ALLOWED: Final = (7, 16)
"""PERMISSION_DENIED and UNAUTHENTICATED; the latter also for an expired token."""


class EtcdRegistry:
    """Keys ``/adjudge/ENV/processes/NAME``. Several endpoints are tried in turn."""

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        environment: str,
        lease_sec: float = LEASE_SEC,
        user: str | None = None,
        password: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._endpoints = [_address(endpoint) for endpoint in endpoints]
        if not self._endpoints:
            raise InvalidInput("etcd_endpoints: must have at least one endpoint.", field="etcd_endpoints")
        self._prefix = f"/adjudge/{environment}/processes/"
        self._lease_sec = max(1, math.ceil(lease_sec))
        self._credentials = {"name": user, "password": password} if user else None
        self._token: str | None = None
        self._client = httpx.AsyncClient(
            timeout=_TIMEOUT_SEC, transport=transport or httpx.AsyncHTTPTransport(socket_options=SOCKET_OPTIONS)
        )
        self._announced: dict[str, tuple[int, ProcessInfo]] = {}

    async def register(self, info: ProcessInfo) -> None:
        """Create a lease and bind the process's key to it; an older lease of ours is revoked."""
        check_process_name(info.name)
        granted = await self._call("lease/grant", {"TTL": self._lease_sec})
        lease = int(granted["ID"])
        try:
            await self._write(info, lease)
        except BaseException:
            await asyncio.shield(self._revoke(lease))
            raise
        older = self._announced.get(info.name)
        self._announced[info.name] = (lease, info)
        if older is not None:
            await self._revoke(older[0])

    async def keep_alive(self, name: str, *, health: ProcessHealth) -> bool:
        """Renew the lease; a changed health is written, too, unless the key is gone."""
        if name not in self._announced:
            return False
        lease, info = self._announced[name]
        answer = await self._call("lease/keepalive", {"ID": str(lease)})
        alive = int(answer.get("result", {}).get("TTL", 0)) > 0
        if alive and info.health != health:
            alive = await self._rewrite(replace(info, health=health), lease)
        if not alive:
            self._announced.pop(name, None)
        return alive

    async def deregister(self, name: str) -> None:
        """Revoke the lease, which deletes the key; without a lease of ours, delete the key itself."""
        announced = self._announced.pop(name, None)
        if announced is not None:
            await self._revoke(announced[0])
        else:
            await self._call("kv/deleterange", {"key": _coded(self._prefix + name)})

    async def list(self) -> list[LiveProcess]:
        """Read all keys below the prefix, then the remaining time of each lease."""
        end = self._prefix[:-1] + chr(ord(self._prefix[-1]) + 1)
        answer = await self._call("kv/range", {"key": _coded(self._prefix), "range_end": _coded(end)})
        rows = [(_info(row["value"]), int(row.get("lease", 0))) for row in answer.get("kvs", ())]
        left = await asyncio.gather(*(self._lease_left(lease) for _, lease in rows))
        living = [
            LiveProcess(info, float(sec), float(max(0, granted - sec - 1)))
            for (info, _), (sec, granted) in zip(rows, left, strict=True)
            if sec >= 0
        ]
        return sorted(living, key=lambda process: process.info.name)

    async def close(self) -> None:
        """Close the connections; leases continue until they expire."""
        await self._client.aclose()

    async def _write(self, info: ProcessInfo, lease: int) -> None:
        await self._call("kv/put", self._entry(info, lease))

    async def _rewrite(self, info: ProcessInfo, lease: int) -> bool:
        """Write only while the key is bound to our lease: another process of the same name may have taken it over."""
        same_lease = {"key": _coded(self._prefix + info.name), "target": "LEASE", "lease": str(lease)}
        put = {"requestPut": self._entry(info, lease)}
        answer = await self._call("kv/txn", {"compare": [same_lease], "success": [put]})
        if answer.get("succeeded", False):
            self._announced[info.name] = (lease, info)
        return bool(answer.get("succeeded", False))

    def _entry(self, info: ProcessInfo, lease: int) -> dict[str, str]:
        return {"key": _coded(self._prefix + info.name), "value": _coded(_text(info)), "lease": str(lease)}

    async def _revoke(self, lease: int) -> None:
        await self._call("lease/revoke", {"ID": str(lease)})

    async def _lease_left(self, lease: int) -> tuple[int, int]:
        """Remaining and granted time in whole seconds: 0 left in the last second of a lease, -1 after its end."""
        answer = await self._call("lease/timetolive", {"ID": str(lease)})
        return int(answer.get("TTL", 0)), int(answer.get("grantedTTL", 0))

    async def _call(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Call the first endpoint that replies; it is tried first from now on."""
        message = "no answer"
        for _ in range(len(self._endpoints) + 1):
            try:
                async with asyncio.timeout(_TIMEOUT_SEC):
                    return await self._ask(self._endpoints[0], path, body)
            except (httpx.HTTPError, OSError, Unavailable) as error:
                if not isinstance(error, Unavailable) and reaction_to(error, REACTIONS) is not Reaction.WAIT:
                    raise InternalFault(f"etcd: request {path} failed: {error!r}.") from error
                message = error.message if isinstance(error, Unavailable) else type(error).__name__
                self._endpoints.append(self._endpoints.pop(0))
        raise Unavailable(f"etcd at {', '.join(map(_place, self._endpoints))} is unavailable ({message}).")

    async def _ask(self, endpoint: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._credentials is not None and self._token is None:
            self._token = await self._log_in(endpoint)
        headers = {"Authorization": self._token} if self._token else {}
        response = await self._client.post(f"{endpoint}/v3/{path}", json=body, headers=headers)
        answer = _parsed(response)
        if response.is_success or answer.get("code") == _NOT_FOUND:
            return answer
        if answer.get("code") in _NOT_ALLOWED or "user name is empty" in str(answer.get("error")):
            self._token = None
            raise Unavailable("authentication failed")
        if response.status_code >= 500:
            raise Unavailable(f"HTTP status {response.status_code}")
        raise InternalFault(f"etcd rejected {path}: {answer.get('error', response.status_code)}")

    async def _log_in(self, endpoint: str) -> str:
        answer = _parsed(await self._client.post(f"{endpoint}/v3/auth/authenticate", json=self._credentials))
        if "token" not in answer:
            raise Unavailable("authentication failed")
        return str(answer["token"])


def _parsed(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _address(endpoint: str) -> str:
    try:
        url = httpx.URL(endpoint)
        is_one = url.scheme in {"http", "https"} and bool(url.host) and (url.port or 1) <= _MOST_PORT
    except httpx.InvalidURL:
        is_one = False
    if not is_one:
        raise InvalidInput("etcd_endpoints: must be http://HOST:PORT or https://HOST:PORT.", field="etcd_endpoints")
    return endpoint.rstrip("/")


def _place(endpoint: str) -> str:
    url = httpx.URL(endpoint)
    return f"{url.host}:{url.port or 2379}"


def _coded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _text(info: ProcessInfo) -> str:
    return json.dumps(asdict(info) | {"languages": dict(info.languages)}, separators=(",", ":"))


def _info(value: str) -> ProcessInfo:
    """Decode what a process registered; unknown fields of newer versions are ignored."""
    said = json.loads(b64decode(value))
    known = {name: said[name] for name in _FIELDS & said.keys()}
    return ProcessInfo(**(known | {"health": ProcessHealth(known["health"]), "role": ProcessRole(known["role"])}))
