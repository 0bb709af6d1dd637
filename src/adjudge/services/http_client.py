"""Guarded outgoing HTTP calls: of ``http`` and ``notify`` nodes, and of webhooks.

The addresses of a host are resolved here and the connection is made to an address that was checked, so a name cannot
resolve to one address for the check and to another for the call. Addresses that are not public (private networks,
loopback, link-local, cloud metadata) are refused unless the operator allows them. No proxy of the environment is used.

Nodes may call only hosts of an allow list, which is empty by default; redirects are followed within it. Webhooks may
call any public host, without redirects.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from adjudge import __version__
from adjudge.domain.errors import InvalidInput, NodeFailed, NodeRefused
from adjudge.domain.ip_addresses import Address, Network, is_public, unwrap_ipv4
from adjudge.domain.strict_json import encode_json
from adjudge.observe.logs import get_logger
from adjudge.services.signing import sign_request

_log = get_logger(__name__)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

SIGNATURE_HEADER: Final = "Adjudge-Signature"
TIMESTAMP_HEADER: Final = "Adjudge-Timestamp"
MAX_REDIRECTS: Final = 5
_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PLAIN_HEADERS: Final = frozenset({"accept", "accept-language", "content-type", "idempotency-key", "user-agent"})
_DEFAULT_HEADERS: Final = {"Accept": "*/*", "User-Agent": f"adjudge/{__version__}"}
"""Unless the node sets them: some servers reject requests without a user agent."""
_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429})
"""Statuses besides 5xx for which a retry may succeed."""


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """An allowed host: ``host`` or ``*.domain``, with its scheme and port."""

    scheme: str
    host: str
    port: int

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """Whether this entry allows the call."""
        named = host == self.host or (self.host.startswith("*.") and host.endswith(self.host[1:]))
        return named and scheme == self.scheme and port == self.port


@dataclass(frozen=True, slots=True)
class HostAllowList:
    """The hosts that nodes may call."""

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
        """Reject a URL whose host is not on the list."""
        if any(place.matches(scheme, host, port) for place in self.hosts):
            return
        raise NodeRefused(f"url: {scheme}://{host}:{port} is not in chains.http_allow.")

    def check_address(self, address: Address, host: str) -> None:
        """Reject an address that is not public, unless it is listed."""
        real = unwrap_ipv4(address)
        if is_public(real) or _contains(self.networks, real):
            return
        if not any(allowed.host == str(real) for allowed in self.hosts):
            _log_refused(host, real)
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
    """The response to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def is_retryable(self) -> bool:
        """Whether a retry may give another response."""
        return self.status >= 500 or self.status in _RETRYABLE_STATUSES

    def document(self) -> dict[str, Any]:
        """The response as an artifact; the body is parsed if its type is JSON."""
        shown = {name: self.headers[name] for name in ("content-type", "etag", "location") if name in self.headers}
        found: dict[str, Any] = {"status": self.status, "url": self.url, "headers": shown}
        if "json" in shown.get("content-type", ""):
            try:
                parsed = {**found, "json": json.loads(self.body)}
                encode_json(parsed, "answer")
            except (ValueError, RecursionError, InvalidInput):
                pass  # not valid JSON, or not storable: shown as text
            else:
                return parsed
        return {**found, "text": self.body.decode(errors="replace").replace("\0", "�")}


@cache
def tls_context() -> ssl.SSLContext:
    """The TLS context with the trusted certificates, loaded once: loading takes longer than most calls."""
    return httpx.create_ssl_context(trust_env=False)


async def resolve_host(host: str, port: int) -> list[str]:
    """The current addresses of a host name, from the system resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(item[4][0]) for item in found]


class AddressPolicy(Protocol):
    """Decides which resolved addresses may be called."""

    def check_address(self, address: Address, host: str) -> None:
        """Raise if ``host`` must not be called at ``address``."""
        ...


@dataclass(frozen=True, slots=True)
class PrivateHostAllowList:
    """Allows every public address, and the listed private hosts and networks (the setting ``webhooks.allow``)."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> PrivateHostAllowList:
        """Read ``ci.internal, 10.0.0.0/8``."""
        networks, hosts = [], set()
        for item in (part.strip().lower() for part in text.split(",") if part.strip()):
            try:
                networks.append(ipaddress.ip_network(item))
            except ValueError:
                if "/" in item:
                    raise InvalidInput(f"webhooks.allow: {item!r} is no network.", field="webhooks.allow") from None
                hosts.add(item)
        return cls(frozenset(hosts), tuple(networks))

    def check_address(self, address: Address, host: str) -> None:
        """Refuse an address that is neither public nor listed."""
        real = unwrap_ipv4(address)
        if not is_public(real) and host not in self.hosts and not _contains(self.networks, real):
            _log_refused(host, real)
            raise InvalidInput(
                f"url: {host} has an address that is not a public one; an operator can add it to the setting "
                "webhooks.allow.",
                field="url",
            )


def _contains(networks: Sequence[Network], address: Address) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _log_refused(host: str, address: Address) -> None:
    """Only the log has the address: an error message must not reveal what names resolve to inside."""
    _log.warning("outgoing_call_refused", host=host, address=str(address))


@dataclass(frozen=True, slots=True)
class GuardedTransport:
    """Sends one request to an address that the policy allows. No connection is kept for another request."""

    policy: AddressPolicy
    resolve: Resolve = resolve_host

    @asynccontextmanager
    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, timeout_sec: float
    ) -> AsyncIterator[httpx.Response]:
        """Send the request; the body of the response is not read yet. Raises ``OSError`` or ``httpx.HTTPError``."""
        parts = urlsplit(url)
        scheme, host, port = _whither(parts)
        address = await self._address(host, port)
        literal = f"[{address}]" if address.version == 6 else str(address)
        named = f"[{host}]" if ":" in host else host
        request = httpx.Request(
            method,
            f"{scheme}://{literal}:{port}{_target(parts)}",
            content=body,
            headers=_merge(headers, {"Host": named if port == _PORTS[scheme] else f"{named}:{port}"}),
            extensions={"sni_hostname": host, "timeout": httpx.Timeout(timeout_sec).as_dict()},
        )
        async with httpx.AsyncHTTPTransport(verify=tls_context(), trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()

    async def _address(self, host: str, port: int) -> Address:
        """The first address of a host. All must be allowed, so that their order does not matter."""
        try:
            found = [ipaddress.ip_address(host)]
        except ValueError:
            try:
                found = [ipaddress.ip_address(item.partition("%")[0]) for item in await self.resolve(host, port)]
            except OSError as error:
                raise OSError(f"{host}: its address cannot be found: {error}") from None
        if not found:
            raise OSError(f"{host}: no address found.")
        for address in found:
            self.policy.check_address(address, host)
        return found[0]


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _sent_target(parts: SplitResult) -> str:
    """The target of the request line: httpx escapes characters and resolves ``..`` when it builds the request."""
    return httpx.URL(f"http://host{_target(parts)}").raw_path.decode("ascii")


def _merge(*groups: Mapping[str, str]) -> httpx.Headers:
    """All headers; a later group replaces those of an earlier one, whatever the case of their names."""
    merged = httpx.Headers()
    for group in groups:
        merged.update(group)
    return merged


class GuardedHttpClient:
    """Makes calls to hosts of the allow list, signed if there is a secret. One serves a whole process."""

    def __init__(
        self,
        allow: HostAllowList,
        secret: bytes = b"",
        *,
        resolve: Resolve = resolve_host,
        now_sec: Callable[[], float] = time.time,
    ) -> None:
        self._allow = allow
        self._secret = secret
        self._now_sec = now_sec
        self._transport = GuardedTransport(allow, resolve)

    async def call(self, call: OutgoingRequest) -> OutgoingResponse:
        """Make the call and follow redirects within the list. ``NodeFailed`` may succeed on another attempt."""
        try:
            async with asyncio.timeout(call.timeout_ms / 1_000):
                return await self._followed(call)
        except TimeoutError:
            raise NodeFailed(f"{call.url}: timed out after {call.timeout_ms} ms.") from None
        except httpx.InvalidURL as error:
            raise InvalidInput(f"url: {call.url[:200]!r} cannot be used: {error}.", field="url") from None
        except httpx.HTTPError as error:
            raise NodeFailed(f"{call.url}: {type(error).__name__}: {error}") from error
        except OSError as error:
            raise NodeFailed(str(error)) from None

    async def _followed(self, call: OutgoingRequest) -> OutgoingResponse:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._once(call)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return answer
            call = _redirected(call, answer)
        raise NodeRefused(f"{call.url}: more than {MAX_REDIRECTS} redirects.")

    async def _once(self, call: OutgoingRequest) -> OutgoingResponse:
        parts = urlsplit(call.url)
        try:
            scheme, host, port = _whither(parts)
        except ValueError as error:
            raise InvalidInput(f"url: {call.url[:200]!r} cannot be used: {error}.", field="url") from None
        self._allow.check(scheme, host, port)
        # Compressed responses are not asked for: a small one could expand to more than memory holds.
        ours = {"Accept-Encoding": "identity", **self._signed(call.method, _sent_target(parts), call.body)}
        headers = _merge(_DEFAULT_HEADERS, call.headers, ours)
        async with self._transport.send(
            call.method, call.url, headers=headers, body=call.body, timeout_sec=call.timeout_ms / 1_000
        ) as response:
            data = await _read(response, call.max_bytes, call.url)
        return OutgoingResponse(
            response.status_code, {key.lower(): value for key, value in response.headers.items()}, data, call.url
        )

    def _signed(self, method: str, target: str, body: bytes) -> dict[str, str]:
        if not self._secret:
            return {}
        timestamp = str(int(self._now_sec()))
        return {
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign_request(self._secret, timestamp, method, target, body),
        }


def _redirected(call: OutgoingRequest, answer: OutgoingResponse) -> OutgoingRequest:
    """The call that a redirect asks for; another host gets neither credentials nor the body."""
    url = urljoin(call.url, answer.headers["location"])
    method, body, headers = call.method, call.body, call.headers
    if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
        method, body = "GET", b""
    if _origin(call.url) != _origin(url):
        headers = _safe_headers(headers)
        if body:
            raise NodeRefused(f"{call.url}: it sends the request's body on to another host; call that one.")
    return replace(call, method=method, url=url, headers=headers, body=body)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _safe_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that another host may get after a redirect: only harmless ones, so no credentials are passed on."""
    return {name: value for name, value in headers.items() if name.lower() in _PLAIN_HEADERS}


async def _read(response: httpx.Response, max_bytes: int, url: str) -> bytes:
    data = bytearray()
    async for piece in response.aiter_raw():
        data += piece
        if len(data) > max_bytes:
            raise NodeRefused(f"{url}: the answer is longer than {max_bytes} bytes.")
    return bytes(data)
