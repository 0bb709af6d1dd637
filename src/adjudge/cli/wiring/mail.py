"""Outgoing mail from settings."""

from __future__ import annotations

from adjudge.domain.errors import InvalidInput
from adjudge.services.smtp import SmtpClient
from adjudge.settings import Settings


def make_smtp_client(settings: Settings) -> SmtpClient | None:
    """The mail server of the settings; None if there is none."""
    if not settings.mail.smtp_url.reveal():
        return None
    if not settings.mail.sender:
        raise InvalidInput(
            "mail.sender: required if mail.smtp_url is set; set ADJUDGE_MAIL_SENDER to an address that the mail server "
            "accepts as sender.",
            field="mail.sender",
        )
    return SmtpClient(settings.mail.smtp_url.reveal(), settings.mail.sender)


def alert_recipients(settings: Settings) -> list[str]:
    """Who gets alert mails; nobody without a mail server."""
    if make_smtp_client(settings) is None:
        return []
    return [address for part in settings.mail.alerts_to.split(",") if (address := part.strip())]


def mail_base_url(settings: Settings) -> str:
    """The base of links in mails; empty if no mail can be sent or the address of the site is unknown."""
    return settings.server.public_url if make_smtp_client(settings) is not None else ""
