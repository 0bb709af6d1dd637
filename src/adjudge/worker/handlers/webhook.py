"""The handler of webhooks: one signed POST, to a public address, within its time, and never further.

The host's addresses are looked up here and the connection goes to the one that was looked at, so that a name cannot
mean one address when it is checked and another when it is called. An address inside (loopback, private networks, a
cloud's metadata) is refused unless the operator allows it. Redirects are not followed, no proxy is used.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from adjudge import __version__
from adjudge.domain.errors import AdjudgeError, InvalidInput, Unavailable
from adjudge.domain.ip_addresses import Address, Network, is_public, unwrap_ipv4
from adjudge.domain.states import JobStatus
from adjudge.observe.logs import get_logger
from adjudge.services.http_client import Resolve, resolve_host, tls_context
from adjudge.store import Database
from adjudge.store.jobs.models import Job
from adjudge.store.webhooks import commands as webhook_commands
from adjudge.store.webhooks.models import DeliveryRequest, WebhookDelivered, WebhookFailed, WebhookSkipped
from adjudge.worker.handler import HandlerResult

_log = get_logger(__name__)
_PORTS: Final = {"http": 80, "https": 443}


class DeliveryFailed(Unavailable):
    """The other side did not take it: try again."""

    code = "DELIVERY_FAILED"

    def __init__(self, message: str | None = None, response_status: int | None = None) -> None:
        super().__init__(message)
        self.response_status = response_status


@dataclass(frozen=True, slots=True)
class HostAllowList:
    """Hosts and networks inside that may be called all the same."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> HostAllowList:
        """Read ``ci.internal, 10.0.0.0/8``."""
        items = [item.strip().lower() for item in text.split(",") if item.strip()]
        networks, hosts = [], set()
        for item in items:
            try:
                networks.append(ipaddress.ip_network(item))
            except ValueError:
                if "/" in item:
                    raise InvalidInput(f"webhooks.allow: {item!r} is no network.", field="webhooks.allow") from None
                hosts.add(item)
        return cls(frozenset(hosts), tuple(networks))

    def check(self, host: str, address: Address) -> None:
        """Refuse an address inside, unless it is allowed."""
        real = unwrap_ipv4(address)
        if is_public(real) or host in self.hosts:
            return
        if not any(real in network for network in self.networks if network.version == real.version):
            # Which address it is stays in the log: a refusal must not tell what names mean inside.
            _log.warning("outgoing_call_refused", host=host, address=str(real))
            raise InvalidInput(
                f"url: {host} has an address that is not a public one; an operator can add it to the setting "
                "webhooks.allow.",
                field="url",
            )


def sign_request(secret: str, timestamp: int, body: bytes) -> str:
    """``t=…,v1=…``: HMAC-SHA256 over the time, a dot and the body, so that neither can be another one."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


class WebhookHandler:
    """Delivers what a job names.

    One transport serves them all, because trusting certificates takes longer to set up than a call. It keeps no
    connection open and no cookie: one that was opened for one host must not carry what is meant for another with the
    same address.
    """

    def __init__(
        self,
        database: Database,
        allowed: HostAllowList,
        *,
        timeout_sec: float = 10.0,
        resolve: Resolve = resolve_host,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._allowed = allowed
        self._timeout_sec = timeout_sec
        self._resolve = resolve
        self._clock = clock
        self._transport = httpx.AsyncHTTPTransport(
            verify=tls_context(), trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def aclose(self) -> None:
        """Let go of the network."""
        await self._transport.aclose()

    def limit_keys(self, job_payload: Mapping[str, Any]) -> tuple[str, ...]:
        """Nothing that is limited."""
        del job_payload
        return ()

    async def run(self, job: Job) -> HandlerResult:
        """Deliver once; any answer but 2xx is a failure, and the job is tried again, later and later.

        The last failure ends the job without a dead letter: it is the receiver's to mend, and the owner's to see.
        """
        request = await self._database.read(
            lambda tx: webhook_commands.find_delivery_request(tx, job.payload["delivery_id"])
        )
        if request is None or not (request.is_active or request.event == webhook_commands.PING):
            return HandlerResult(JobStatus.SUCCEEDED, {"skipped": True}, WebhookSkipped())
        try:
            status = await self._post(request, job.attempt_id)
        except DeliveryFailed as error:
            if job.attempt_id < job.max_attempts:
                raise
            return _given_up(error, error.response_status)
        except InvalidInput as error:
            return _given_up(error)
        return HandlerResult(JobStatus.SUCCEEDED, {"response_status": status}, WebhookDelivered(status))

    async def _post(self, request: DeliveryRequest, attempt: int) -> int:
        url = urlsplit(request.url)
        host, port = (url.hostname or "").rstrip(".").lower(), url.port or _PORTS.get(url.scheme, 0)
        if not host or not port:
            raise InvalidInput(f"url: {request.url[:200]!r} cannot be called.", field="url")
        body, timestamp = request.body.encode(), int(self._clock())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"adjudge/{__version__}",
            "Host": url.netloc.rpartition("@")[2],
            "X-Adjudge-Event": request.event,
            "X-Adjudge-Delivery": request.delivery_id,
            "X-Adjudge-Attempt": str(attempt),
            "X-Adjudge-Signature": sign_request(request.secret, timestamp, body),
        }
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        try:
            async with asyncio.timeout(self._timeout_sec):
                literal = await self._literal(host, port)
                status = await self._send(f"{url.scheme}://{literal}:{port}{target}", host, headers, body)
        except TimeoutError:
            raise DeliveryFailed(f"No answer within {self._timeout_sec} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise DeliveryFailed(f"{type(error).__name__}: {error}") from error
        if not 200 <= status < 300:
            raise DeliveryFailed(f"HTTP {status} from receiver; expected 2xx.", status)
        return status

    async def _send(self, url: str, host: str, headers: Mapping[str, str], body: bytes) -> int:
        extensions = {"sni_hostname": host, "timeout": httpx.Timeout(self._timeout_sec).as_dict()}
        request = httpx.Request("POST", url, content=body, headers=headers, extensions=extensions)
        response = await self._transport.handle_async_request(request)
        await response.aclose()  # what else it says is not read
        return response.status_code

    async def _literal(self, host: str, port: int) -> str:
        """The first address; all must be allowed, so that which is the first does not matter."""
        addresses = [ipaddress.ip_address(item.partition("%")[0]) for item in await self._resolve(host, port)]
        if not addresses:
            raise DeliveryFailed(f"{host}: no address found.")
        for address in addresses:
            self._allowed.check(host, address)
        return f"[{addresses[0]}]" if addresses[0].version == 6 else str(addresses[0])


def _given_up(error: AdjudgeError, response_status: int | None = None) -> HandlerResult:
    """The receiver failed, not Adjudge: the delivery's owner sees it and may repeat it, and there is no dead letter."""
    outcome = WebhookFailed(error.message, response_status)
    return HandlerResult(
        JobStatus.FAILED, {"error": error.message}, outcome, error.code, error.message, dead_letter=False
    )
