"""A real SMTP server for tests, on a free port of the loopback interface."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "judge", "correct-horse"


@dataclass
class Mailbox:
    """What the server has received; ``reply`` is its answer to the next recipients."""

    url: str = ""
    received: list[EmailMessage] = field(default_factory=list)
    reply: str = "250 OK"

    async def handle_RCPT(  # noqa: N802 — aiosmtpd's name
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if self.reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.reply

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content
        assert isinstance(content, bytes)
        message = message_from_bytes(content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.received.append(message)
        return "250 OK"


class _Connection(SMTP):
    """One connection; the server waits for the ends of all."""

    def __init__(self, mailbox: Mailbox, open_connections: set[_Connection], none_open: asyncio.Event) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a login without TLS, which is meant
            super().__init__(
                mailbox, hostname="localhost", authenticator=_authenticate, auth_required=True, auth_require_tls=False
            )
        self._open_connections = open_connections
        self._none_open = none_open

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._open_connections.add(self)
        self._none_open.clear()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._open_connections.discard(self)
        if not self._open_connections:
            self._none_open.set()


logging.getLogger("mail.log").setLevel(logging.ERROR)


@asynccontextmanager
async def smtp_server() -> AsyncIterator[Mailbox]:
    """A server that requires a login; without TLS, as one on the same machine."""
    mailbox, loop, none_open = Mailbox(), asyncio.get_running_loop(), asyncio.Event()
    connections: set[_Connection] = set()
    none_open.set()
    server = await loop.create_server(lambda: _Connection(mailbox, connections, none_open), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        mailbox.url = f"smtp://{USER}:{PASSWORD}@127.0.0.1:{port}?starttls=off"
        yield mailbox
        for connection in tuple(connections):
            if connection.transport is not None:
                connection.transport.close()
        await none_open.wait()
        await asyncio.sleep(0)  # the socket of the last one is closed in the next iteration


def _authenticate(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, given: object) -> AuthResult:
    right = isinstance(given, LoginPassword) and (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)
