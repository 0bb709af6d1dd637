"""Sends one mail by SMTP. The standard library's client is blocking, so it runs on a thread."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from typing import Final
from urllib.parse import unquote, urlsplit

from adjudge.domain.errors import InvalidInput, Unavailable

_TIMEOUT_SEC: Final = 20.0
_PERMANENT: Final = 500


class MailRefused(InvalidInput):
    """The mail server refused the mail for good."""

    code = "MAIL_REFUSED"


@dataclass(frozen=True, slots=True)
class SmtpClient:
    """An SMTP server and the address that mail is sent from."""

    url: str = field(repr=False)
    """``smtp://USER:PASSWORD@HOST:PORT`` with STARTTLS, unless ``?starttls=off`` is added, or ``smtps://…``."""
    sender: str
    timeout_sec: float = _TIMEOUT_SEC

    async def send(self, *, message_id: str, recipient: str, subject: str, body: str) -> None:
        """Send a mail; ``Unavailable`` if it may succeed later, ``MailRefused`` if the server refuses it for good.

        ``message_id`` is the same at every attempt, so that a mail that was sent twice can be recognised.
        """
        message = EmailMessage()
        try:
            message["From"], message["To"] = self.sender, Address(addr_spec=recipient)
            message["Subject"] = subject
        except (ValueError, IndexError) as error:
            raise MailRefused(f"{recipient!r} is not a mail address: {error}") from None
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{message_id}@{self.sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(body)
        await asyncio.to_thread(self._send, message)

    def _send(self, message: EmailMessage) -> None:
        try:
            with self._connect() as server:
                server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            (code, text), *_ = error.recipients.values()
            raise _refusal(code, text) from None
        except smtplib.SMTPResponseException as error:
            raise _refusal(error.smtp_code, error.smtp_error) from None
        except (OSError, smtplib.SMTPException) as error:
            raise Unavailable(f"mail server: {error}") from error

    def _connect(self) -> smtplib.SMTP:
        parts = urlsplit(self.url)
        host, context = parts.hostname or "", ssl.create_default_context()
        server: smtplib.SMTP
        if parts.scheme == "smtps":
            server = smtplib.SMTP_SSL(host, parts.port or 465, timeout=self.timeout_sec, context=context)
        else:
            server = smtplib.SMTP(host, parts.port or 587, timeout=self.timeout_sec)
        try:
            if parts.scheme == "smtp" and parts.query != "starttls=off":
                server.starttls(context=context)
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
        except BaseException:
            server.close()
            raise
        return server


def _refusal(code: int, text: bytes | str) -> InvalidInput | Unavailable:
    shown = f"mail server: {code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"
    return MailRefused(shown) if code >= _PERMANENT else Unavailable(shown)
