"""The section ``mail``: the SMTP server and who gets alerts."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.settings.secret import SmtpUrl
from adjudge.settings.setting import declare as _setting


@dataclass(frozen=True, slots=True)
class MailSettings:
    """Outgoing mail: password resets, invitations, and alerts for operators."""

    smtp_url: SmtpUrl = _setting(  # noqa: RUF009  # it is dataclasses.field
        SmtpUrl(""),
        "smtp://USER:PASSWORD@HOST:587 (STARTTLS; ?starttls=off for a server on this machine) or "
        "smtps://USER:PASSWORD@HOST:465; empty: no mail is sent.",
        "SMTP_URL",
    )
    sender: str = _setting(
        "",
        "Address that mail is sent from; required if mail.smtp_url is set.",
        "MAIL_SENDER",
        pattern=r"([^@\s]+@[^@\s]+)?",
    )
    alerts_to: str = _setting(
        "",
        "Comma-separated addresses that get alerts: lost workers, dead letters, failed chain runs; empty: nobody.",
        "MAIL_ALERTS_TO",
    )
    alert_interval_sec: int = _setting(
        300,
        "Minimum seconds between two alert mails; what happens meanwhile is in the next one.",
        "MAIL_ALERT_INTERVAL_SEC",
        minimum=0,
    )
    keep_sec: int = _setting(30 * 86_400, "Retention of the log of sent mail in seconds.", "MAIL_KEEP_SEC", minimum=60)
