"""Who somebody is to another provider."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExternalIdentity:
    """Whom a provider vouches for. Issuer and subject name the person; the rest is only what they are called."""

    issuer: str
    subject: str
    name: str = ""
    display_name: str | None = None
