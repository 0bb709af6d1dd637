"""Calls to the outside: only to hosts on the list, signed, bounded in size and time.

The list is all that may be called; by default it is empty. A host's addresses are looked up here and the connection is
made to the address that was looked at, so a name cannot lead to one address when it is checked and to another when it
is used. Addresses that are not global (private networks, loopback, link-local, a cloud's metadata) are refused unless
the list names that address or a network that holds it. Redirects are followed to hosts on the list alone. No proxy of
the environment is used.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from adjudge.domain.errors import InvalidInput, NodeFailed, NodeRefused
from adjudge.domain.ip_addresses import Address, Network, is_public, unwrap_ipv4
from adjudge.domain.strict_json import encode_json
from adjudge.observe.logs import get_logger

_log = get_logger(__name__)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

SIGNATURE_HEADER: Final = "Adjudge-Signature"
TIMESTAMP_HEADER: Final = "Adjudge-Timestamp"
MAX_REDIRECTS: Final = 5
_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PLAIN_HEADERS: Final = frozenset({"accept", "accept-language", "content-type", "idempotency-key", "user-agent"})
_LATER: Final = frozenset({408, 425, 429})
"""Besides 5xx: answers that may be another one later."""


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """A host that may be called: ``host``, ``*.domain``, with a port and a scheme of its own where it has one."""

    scheme: str
    host: str
    port: int

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """Whether a call goes there."""
        named = host == self.host or (self.host.startswith("*.") and host.endswith(self.host[1:]))
        return named and scheme == self.scheme and port == self.port


@dataclass(frozen=True, slots=True)
class HostAllowList:
    """Where calls may go."""

    hosts: tuple[AllowedHost, ...] = ()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> HostAllowList:
        """Read ``example.org, *.example.org, http://10.0.0.5:8080, 10.0.0.0/8``; plain names mean https."""
        places, networks = [], []
        for item in (part.strip() for part in text.split(",")):
            if not item:
                continue
            if "/" in item and "://" not in item:
                networks.append(_network(item))
            else:
                places.append(_place(item))
        return cls(tuple(places), tuple(networks))

    def check(self, scheme: str, host: str, port: int) -> None:
        """Refuse a place that is not on the list."""
        if any(place.matches(scheme, host, port) for place in self.hosts):
            return
        raise NodeRefused(f"url: {scheme}://{host}:{port} is not in chains.http_allow.")

    def check_address(self, address: Address, host: str) -> None:
        """Refuse an address inside, unless it is listed as such."""
        real = unwrap_ipv4(address)
        if is_public(real):
            return
        listed = any(place.host == str(real) for place in self.hosts)
        if not listed and not any(real in network for network in self.networks if network.version == real.version):
            # Which address it is stays in the log: a refusal must not tell what names mean inside.
            _log.warning("outgoing_call_refused", host=host, address=str(real))
            raise NodeRefused(
                f"url: {host} has an address that is not a public one; an operator adds the address or its network to "
                "the setting chains.http_allow."
            )


def _network(item: str) -> Network:
    try:
        return ipaddress.ip_network(item)
    except ValueError as error:
        raise InvalidInput(f"chains.http_allow: {item!r} is no network: {error}.", field="chains.http_allow") from None


def _place(item: str) -> AllowedHost:
    parts = urlsplit(item if "://" in item else f"https://{item}")
    try:
        scheme, host, port = _whither(parts)
    except ValueError as error:
        raise InvalidInput(f"chains.http_allow: {item!r}: {error}.", field="chains.http_allow") from None
    if parts.path.strip("/") or parts.query or parts.username:
        raise InvalidInput(f"chains.http_allow: {item!r}: give a host, not a path.", field="chains.http_allow")
    return AllowedHost(scheme, host, port)


def _whither(parts: SplitResult) -> tuple[str, str, int]:
    if parts.scheme not in _PORTS:
        raise ValueError("the scheme must be https or http")
    if not parts.hostname:
        raise ValueError("there is no host in it")
    return parts.scheme, parts.hostname.rstrip(".").lower(), parts.port or _PORTS[parts.scheme]


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    timeout_ms: int = 10_000
    max_bytes: int = 256 * 1024


@dataclass(frozen=True, slots=True)
class OutgoingResponse:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def is_retryable(self) -> bool:
        """Whether the other side may answer otherwise later."""
        return self.status >= 500 or self.status in _LATER

    def document(self) -> dict[str, Any]:
        """The answer as an artifact: its body as JSON where it says that it is."""
        shown = {name: self.headers[name] for name in ("content-type", "etag", "location") if name in self.headers}
        found: dict[str, Any] = {"status": self.status, "url": self.url, "headers": shown}
        if "json" in shown.get("content-type", ""):
            try:
                told = {**found, "json": json.loads(self.body)}
                encode_json(told, "answer")
            except (ValueError, RecursionError, InvalidInput):
                pass  # it says JSON and is none, or none that can be kept: shown as text
            else:
                return told
        return {**found, "text": self.body.decode(errors="replace").replace("\0", "�")}


@cache
def tls_context() -> ssl.SSLContext:
    """The authorities that certificates are checked against, read once: that takes longer than most calls."""
    return httpx.create_ssl_context(trust_env=False)


async def resolve_host(host: str, port: int) -> list[str]:
    """The addresses that a name has now, as the machine finds them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(item[4][0]) for item in found]


def sign_request(secret: bytes, timestamp: str, method: str, target: str, body: bytes) -> str:
    """``v1=`` and HMAC-SHA256 over ``timestamp.method.target.`` and the body, in hexadecimal."""
    message = f"{timestamp}.{method}.{target}.".encode() + body
    return "v1=" + hmac.new(secret, message, hashlib.sha256).hexdigest()


class GuardedHttpClient:
    """Makes calls within the list. One serves a whole process."""

    def __init__(
        self,
        allow: HostAllowList,
        secret: bytes = b"",
        *,
        resolve: Resolve = resolve_host,
        now_sec: Callable[[], float] = time.time,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._allow = allow
        self._secret = secret
        self._resolve = resolve
        self._now_sec = now_sec
        self._transport = transport

    async def call(self, call: OutgoingRequest) -> OutgoingResponse:
        """Make the call, following redirects within the list; what the network fails at may be tried again."""
        try:
            async with (
                asyncio.timeout(call.timeout_ms / 1_000),
                httpx.AsyncClient(
                    trust_env=False,
                    verify=tls_context(),
                    follow_redirects=False,
                    timeout=call.timeout_ms / 1_000,
                    transport=self._transport,
                ) as client,
            ):
                return await self._followed(client, call)
        except TimeoutError:
            raise NodeFailed(f"{call.url}: timed out after {call.timeout_ms} ms.") from None
        except httpx.InvalidURL as error:
            raise InvalidInput(f"url: {call.url[:200]!r} cannot be used: {error}.", field="url") from None
        except httpx.HTTPError as error:
            raise NodeFailed(f"{call.url}: {type(error).__name__}: {error}") from error

    async def _followed(self, client: httpx.AsyncClient, call: OutgoingRequest) -> OutgoingResponse:
        method, url, body = call.method, call.url, call.body
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._once(client, call, method, url, body)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return answer
            came_from, url = url, urljoin(url, answer.headers["location"])
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method, body = "GET", b""
            if _origin(came_from) != _origin(url):
                call = replace(call, headers=_for_anybody(call.headers))
                if body:
                    raise NodeRefused(f"{came_from}: it sends the request's body on to another host; call that one.")
        raise NodeRefused(f"{call.url}: more than {MAX_REDIRECTS} redirects.")

    async def _once(
        self, client: httpx.AsyncClient, call: OutgoingRequest, method: str, url: str, body: bytes
    ) -> OutgoingResponse:
        parts = urlsplit(url)
        try:
            scheme, host, port = _whither(parts)
        except ValueError as error:
            raise InvalidInput(f"url: {url[:200]!r} cannot be used: {error}.", field="url") from None
        self._allow.check(scheme, host, port)
        address = await self._address(host, port)
        literal = f"[{address}]" if address.version == 6 else str(address)
        named = f"[{host}]" if ":" in host else host
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        # Compressed answers are not asked for: a small one could unpack to more than memory holds.
        ours = {"Host": named if port == _PORTS[scheme] else f"{named}:{port}", "Accept-Encoding": "identity"}
        request = client.build_request(
            method,
            f"{scheme}://{literal}:{port}{target}",
            content=body,
            headers={**call.headers, **ours},
            extensions={"sni_hostname": host},
        )
        request.headers.update(self._signed(method, request.url.raw_path.decode("ascii"), body))
        response = await client.send(request, stream=True)
        try:
            data = await _read(response, call.max_bytes, url)
        finally:
            await response.aclose()
        return OutgoingResponse(
            response.status_code, {key.lower(): value for key, value in response.headers.items()}, data, url
        )

    async def _address(self, host: str, port: int) -> Address:
        """The first address of a host; every one of them must be allowed, so that which is first does not matter."""
        try:
            found = [ipaddress.ip_address(host)]
        except ValueError:
            try:
                found = [ipaddress.ip_address(item.partition("%")[0]) for item in await self._resolve(host, port)]
            except OSError as error:
                raise NodeFailed(f"{host}: its address cannot be found: {error}") from None
        if not found:
            raise NodeFailed(f"{host}: no address found.")
        for address in found:
            self._allow.check_address(address, host)
        return found[0]

    def _signed(self, method: str, target: str, body: bytes) -> dict[str, str]:
        if not self._secret:
            return {}
        timestamp = str(int(self._now_sec()))
        return {
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign_request(self._secret, timestamp, method, target, body),
        }


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _for_anybody(headers: Mapping[str, str]) -> dict[str, str]:
    """What another host may be sent: a redirect must not carry one host's credentials, in any header, to the next."""
    return {name: value for name, value in headers.items() if name.lower() in _PLAIN_HEADERS}


async def _read(response: httpx.Response, max_bytes: int, url: str) -> bytes:
    data = bytearray()
    async for piece in response.aiter_raw():
        data += piece
        if len(data) > max_bytes:
            raise NodeRefused(f"{url}: the answer is longer than {max_bytes} bytes.")
    return bytes(data)
