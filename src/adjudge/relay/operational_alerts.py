"""Alerts operators to lost workers, dead letters and failed chain runs, by webhooks and mails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adjudge.domain.ids import new_id
from adjudge.domain.permissions import ROLE_PERMISSIONS, Permission
from adjudge.domain.timestamps import format_timestamp
from adjudge.observe.logs import get_logger
from adjudge.store import Database, Tx
from adjudge.store.ops import mails, operational_events
from adjudge.store.ops.mails import NewMail
from adjudge.store.ops.operational_events import OperationalEventRow
from adjudge.store.webhooks import commands as webhook_commands

_log = get_logger(__name__)
_BATCH: Final = 200
_SHOWN: Final = 50
_ROLES: Final = [role.value for role, granted in ROLE_PERMISSIONS.items() if Permission.OPS_READ in granted]
_NAMES: Final = {
    operational_events.WORKER_LOST: "worker lost",
    operational_events.DEAD_LETTER: "dead letter",
    operational_events.CHAIN_FAILED: "chain run failed",
}


class OperationalAlerts:
    """Looks for new events. Any number of schedulers may run it: each event is recorded, and so reported, once."""

    def __init__(
        self, database: Database, *, recipients: Sequence[str] = (), interval_ms: int = 300_000, public_url: str = ""
    ) -> None:
        self._database = database
        self._recipients = recipients
        self._interval_ms = interval_ms
        self._public_url = public_url

    async def run_once(self) -> int:
        """Record and report what is new; return how many events."""
        recorded = await self._database.transact(self._record)
        for event in recorded:
            _log.warning("operational_event_recorded", kind=event.kind, subject=event.subject, detail=event.detail)
        if self._recipients:
            await self._database.transact(self._mail)
        return len(recorded)

    async def _record(self, tx: Tx) -> list[OperationalEventRow]:
        found = await operational_events.find_new(tx, limit=_BATCH)
        if not found:
            return []
        recorded = await operational_events.insert(tx, [(new_id(), *event) for event in found])
        await webhook_commands.enqueue_operational(tx, recorded, roles=_ROLES)
        return recorded

    async def _mail(self, tx: Tx) -> None:
        events = await operational_events.take_unmailed(tx, interval_ms=self._interval_ms)
        if events:
            subject, body = alert_text(events, self._public_url)
            await mails.enqueue(tx, [NewMail(recipient, subject, body) for recipient in self._recipients])


def alert_text(events: Sequence[OperationalEventRow], public_url: str) -> tuple[str, str]:
    """The subject and the text of an alert mail."""
    subject = f"Adjudge: {_NAMES[events[0].kind]}" if len(events) == 1 else f"Adjudge: {len(events)} alerts"
    lines = [f"{format_timestamp(event.created_at)}  {_NAMES[event.kind]}: {event.detail}" for event in events[:_SHOWN]]
    if len(events) > _SHOWN:
        lines.append(f"… and {len(events) - _SHOWN} more.")
    lines += ["", f"Operations: {public_url}/ops" if public_url else "See the page Operations."]
    return subject, "\n".join(lines) + "\n"
