"""Triggers: what starts runs without a person, exactly once for each tick however many schedulers there are.

Kinds: ``cron`` (a schedule in a time zone), ``delay`` (once, at a time), ``event`` (a problem published, a contest
started or ended, a rejudge applied), ``webhook`` (a call that knows the secret), ``chain`` (another chain ended).
Reading and checking their specs is here, and the scheduler's round; rows and events are ``store.chain_triggers``.

After downtime nothing is lost: events and calls were written down as ticks; timetables follow their misfire rule; a
delay fires however late; contests that ended within the last week are noticed (``relay.contest_announcer``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from adjudge.chains import templating
from adjudge.chains.cron import MisfirePolicy, parse_cron, parse_timestamp
from adjudge.chains.validation import check_cfg
from adjudge.domain.authority import Authority
from adjudge.domain.chain_parser import find_cycle
from adjudge.domain.errors import InvalidInput, NotFound, TriggerDisabled, Unavailable
from adjudge.domain.ids import IdFactory, new_id
from adjudge.domain.strict_json import encode_json
from adjudge.observe.logs import get_logger
from adjudge.observe.outages import Outage
from adjudge.store import Database, Tx
from adjudge.store.chains import definitions
from adjudge.store.chains import triggers as rows
from adjudge.store.chains.models import PendingTick, TriggerTick
from adjudge.store.chains.triggers import NewTrigger, TriggerRow

_log = get_logger(__name__)

_SECOND_US: Final = 1_000_000
_DUE_AT_ONCE: Final = 100
_POLL_SEC: Final = 1.0
_KEY_CHARACTERS: Final = 128
_SECRET_PREFIX: Final = "adjt_"  # noqa: S105  # what a secret starts with, so that scanners find leaked ones

_PARAMETERS: Final = {"type": "object", "description": "Parameters of the run; templates may name event and trigger."}
_PLAIN: Final = {"type": ["string", "number"]}
_MISFIRE: Final = {"enum": [item.value for item in MisfirePolicy]}
SPECS: Final[Mapping[str, Mapping[str, Any]]] = {
    "cron": {
        "type": "object",
        "properties": {
            "cron": {"type": "string", "description": "Minute, hour, day of the month, month, day of the week."},
            "timezone": {"type": "string", "description": "As in Europe/Berlin; UTC where it is left out."},
            "misfire": {**_MISFIRE, "description": "What to do about missed times: skip, once (default), all."},
            "misfire_cap": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Of all: how many."},
            "grace_sec": {"type": "number", "minimum": 1, "maximum": 86400, "description": "Later than that: missed."},
            "parameters": _PARAMETERS,
        },
        "required": ["cron"],
        "additionalProperties": False,
    },
    "delay": {
        "type": "object",
        "properties": {
            "at": {"type": "string", "description": "A timestamp with an offset: 2026-05-01T18:00:00+02:00."},
            "after_sec": {"type": "number", "minimum": 0, "maximum": 3.2e8, "description": "From its creation on."},
            "parameters": _PARAMETERS,
        },
        "oneOf": [{"required": ["at"]}, {"required": ["after_sec"]}],
        "additionalProperties": False,
    },
    "event": {
        "type": "object",
        "properties": {
            "event": {"enum": list(rows.EVENTS), "description": "What to wait for."},
            "filter": {
                "type": "object",
                "additionalProperties": {"anyOf": [_PLAIN, {"type": "array", "items": _PLAIN}]},
                "description": "Fields of the event and the value, or values, they must have.",
            },
            "parameters": _PARAMETERS,
        },
        "required": ["event"],
        "additionalProperties": False,
    },
    "webhook": {
        "type": "object",
        "properties": {"parameters": _PARAMETERS},
        "additionalProperties": False,
    },
    "chain": {
        "type": "object",
        "properties": {
            "chain_id": {"type": "string", "description": "The chain whose runs are watched, by name or id."},
            "on": {"enum": ["success", "failure", "any"], "description": "Which ends count; success is the usual."},
            "parameters": _PARAMETERS,
        },
        "required": ["chain_id"],
        "additionalProperties": False,
    },
}
"""Kind → JSON Schema of its spec."""

_ENDS: Final = {"success": ["success"], "failure": ["failed", "stopped"], "any": ["success", "failed", "stopped"]}


class StartTriggeredRun(Protocol):
    """Starts a run in the caller's transaction; for a known key it returns the existing run."""

    async def __call__(
        self,
        tx: Tx,
        *,
        chain_id: str,
        parameters: Mapping[str, Any],
        idempotency_key: str,
        trigger_kind: str,
        actor: str,
        authority: Authority | None,
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class CreatedTrigger:
    """A new trigger; the secret of a webhook is shown once, and only its digest is stored."""

    trigger_id: str
    secret: str | None = None


class TriggerCommands:
    """The operations on triggers, each in the caller's transaction."""

    def __init__(self, new_id: IdFactory = new_id) -> None:
        self._new_id = new_id

    async def create(
        self,
        tx: Tx,
        *,
        chain_id: str,
        name: str,
        kind: str,
        spec: Mapping[str, Any],
        actor: str,
        authority: Authority | None = None,
        enabled: bool = True,
    ) -> CreatedTrigger:
        """Create a trigger; one that could never fire is refused, with the field."""
        checked = await _checked(tx, chain_id, kind, spec)
        secret = _SECRET_PREFIX + secrets.token_urlsafe(32) if kind == "webhook" else None
        trigger = NewTrigger(
            id=self._new_id(),
            chain_id=chain_id,
            name=name,
            kind=kind,
            spec=checked.spec,
            event=checked.event,
            secret_hash=_digest(secret) if secret else None,
            enabled=enabled,
            next_at=checked.next_at,
            created_by=actor,
            authority=authority,
        )
        await rows.insert(tx, trigger)
        return CreatedTrigger(trigger.id, secret)

    async def update(
        self,
        tx: Tx,
        trigger_id: str,
        *,
        version: int,
        spec: Mapping[str, Any] | None = None,
        enabled: bool | None = None,
        authority: Authority | None = None,
    ) -> TriggerRow:
        """Change a trigger. Its schedule starts anew: times missed while it was disabled are not made up for."""
        current = await rows.find(tx, trigger_id)
        wanted = user_spec(current) if spec is None else spec
        checked = await _checked(tx, current.chain_id, current.kind, wanted, trigger_id)
        changed = replace(
            current,
            version=version,
            spec=checked.spec,
            event=checked.event,
            enabled=current.enabled if enabled is None else enabled,
            next_at=current.next_at if current.kind == "delay" and spec is None else checked.next_at,
        )
        return replace(changed, version=await rows.update(tx, changed, authority))

    async def handle_webhook_call(
        self, tx: Tx, trigger_id: str, *, secret: str, key: str | None, payload: Mapping[str, Any]
    ) -> str:
        """Take a webhook's call; return its tick. A wrong secret and a missing trigger look alike from outside.

        ``key`` is the caller's own name for this call: the same one again is the same tick.
        """
        try:
            trigger: TriggerRow | None = await rows.find(tx, trigger_id)
        except NotFound:
            trigger = None
        stored = (trigger.secret_hash if trigger else None) or _digest("")
        if not hmac.compare_digest(stored, _digest(secret)) or trigger is None or trigger.kind != "webhook":
            raise NotFound("trigger", trigger_id)
        if not trigger.enabled:
            raise TriggerDisabled("The trigger is disabled; enable it first.", id=trigger_id)
        if key is not None and not 0 < len(key) <= _KEY_CHARACTERS:
            raise InvalidInput(f"key: use 1 to {_KEY_CHARACTERS} characters.", field="key")
        encode_json(payload, "body")
        tick = f"call:{key}" if key else f"call:{self._new_id()}"
        await rows.add_ticks(tx, [TriggerTick(trigger.id, tick, payload=payload)])
        return tick


@dataclass(frozen=True, slots=True)
class _CheckedTrigger:
    spec: Mapping[str, Any]
    event: str | None = None
    next_at: int | None = None


async def _checked(
    tx: Tx, chain_id: str, kind: str, spec: Mapping[str, Any], trigger_id: str | None = None
) -> _CheckedTrigger:
    if kind not in SPECS:
        raise InvalidInput(f"kind: there is no trigger {kind[:64]!r}; choose one of {', '.join(SPECS)}.", field="kind")
    encode_json(spec, "spec")
    check_cfg(SPECS[kind], spec, place="spec")
    for item in templating.references(spec.get("parameters", {}), "spec.parameters"):
        if item.path[0] not in ("event", "trigger"):
            raise InvalidInput(
                f"{item.place}: there is no {item.path[0]!r} here; use event or trigger.", field=item.place
            )
    if kind == "cron":
        return _CheckedTrigger(spec, next_at=parse_cron(spec).next_after(await rows.now_us(tx)))
    if kind == "delay":
        now_us = await rows.now_us(tx)
        after_us = round(float(spec.get("after_sec", 0)) * _SECOND_US)
        return _CheckedTrigger(
            spec, next_at=parse_timestamp(spec["at"], "spec.at") if "at" in spec else now_us + after_us
        )
    if kind == "chain":
        return await _after_chain(tx, chain_id, spec, trigger_id)
    for name in spec.get("filter", {}):
        if name not in rows.EVENTS[spec["event"]]:
            known = ", ".join(rows.EVENTS[spec["event"]])
            raise InvalidInput(f"spec.filter: {spec['event']} has no {name!r}; it has {known}.", field="spec.filter")
    return _CheckedTrigger(spec, event=spec.get("event"))


async def _after_chain(tx: Tx, chain_id: str, spec: Mapping[str, Any], trigger_id: str | None) -> _CheckedTrigger:
    """Watch another chain; refuse what would start itself for ever, and spell the circle out."""
    source = await _chain_id(tx, str(spec["chain_id"]))
    edges: dict[str, list[str]] = {}
    for ended, started in [(source, chain_id), *await rows.chain_edges(tx, except_id=trigger_id)]:
        edges.setdefault(ended, []).append(started)
        edges.setdefault(started, [])
    if (cycle := find_cycle(edges)) is not None:
        raise InvalidInput(
            f"spec.chain_id: trigger cycle: {' → '.join(reversed(cycle))}.",
            field="spec.chain_id",
        )
    wanted = {"chain_id": source, "status": _ENDS[spec.get("on", "success")]}
    return _CheckedTrigger({**spec, "filter": wanted}, event=rows.CHAIN_FINISHED)


async def _chain_id(tx: Tx, name: str) -> str:
    """Find a chain by name or id, because files contain names."""
    for find in (definitions.find, definitions.find_by_name):
        with suppress(NotFound):
            return (await find(tx, name)).id
    raise InvalidInput(f"spec.chain_id: there is no chain {name[:128]!r}; define it first.", field="spec.chain_id")


def user_spec(trigger: TriggerRow) -> dict[str, Any]:
    """A spec as it was given, without derived fields."""
    return {key: value for key, value in trigger.spec.items() if trigger.kind == "event" or key != "filter"}


def _digest(secret: str) -> str:
    """Secrets are random and long, so one hash is enough; only the digest is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TriggerScheduler:
    """The scheduler's part: due times become ticks, ticks become runs. Any number may run at once."""

    def __init__(self, database: Database, start: StartTriggeredRun, *, name: str) -> None:
        self._database = database
        self._start = start
        self._name = name

    async def run(self) -> None:
        """Run forever: on a notification of a tick, and at least every second."""
        woken = asyncio.Event()
        stop = self._database.listen(rows.CHANNEL_TRIGGERS, woken.set)
        outage = Outage(_log, "trigger_scheduler_retrying", first_sec=_POLL_SEC)
        try:
            while True:
                woken.clear()
                try:
                    await self.run_once()
                    outage.over()
                except Unavailable as error:
                    await asyncio.sleep(outage.failed(error))
                    continue
                except Exception:  # noqa: BLE001 — an error here must not end the scheduler's other tasks
                    _log.exception("trigger_scheduler_failed")
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SEC):
                        await woken.wait()
        finally:
            stop()

    async def run_once(self) -> int:
        """Start the runs that are due; return how many were started."""
        while await self._database.transact(self._mature) == _DUE_AT_ONCE:
            pass
        started = 0
        while (was_started := await self._start_next()) is not None:
            started += was_started
        return started

    async def _mature(self, tx: Tx) -> int:
        """Insert ticks for due times and set the next times of the triggers, in one transaction."""
        now_us, due = await rows.take_due(tx, _DUE_AT_ONCE)
        ticks, moves = [], []
        for trigger in due:
            timestamp_us = trigger.next_at or 0
            try:
                timestamps, next_us = _timestamps(trigger, timestamp_us, now_us)
            except (InvalidInput, ValueError) as error:  # a time zone can vanish from a machine; the others go on
                await rows.disable_with_error(tx, trigger.id, str(error))
                continue
            ticks += [TriggerTick(trigger.id, str(timestamp), timestamp) for timestamp in timestamps]
            moves.append((trigger.id, timestamp_us, next_us, str(timestamps[-1]) if timestamps else None))
        await rows.set_next_times(tx, moves)
        await rows.add_ticks(tx, ticks)
        return len(due)

    async def _start_next(self) -> bool | None:
        """Start the run of one tick; False if that failed for good, None if no tick waits."""
        taken: list[PendingTick] = []

        async def operation(tx: Tx) -> bool | None:
            taken.clear()
            tick = await rows.take_tick(tx)
            if tick is None:
                return None
            taken.append(tick)
            run_id = await self._start(
                tx,
                chain_id=tick.chain_id,
                parameters=_parameters(tick),
                idempotency_key=f"{tick.trigger_id}:{tick.tick}",
                trigger_kind=tick.kind,
                actor=f"trigger:{tick.trigger_id}",
                authority=tick.authority,
            )
            await rows.finish_tick(tx, tick, run_id=run_id)
            return True

        try:
            return await self._database.transact(operation)
        except Unavailable:
            raise
        except Exception as error:
            # Disabled, deleted, wrong parameters: a retry would fail with the same error. An unexpected error must not
            # be retried forever either, because it would block the ticks that follow.
            if not taken:
                raise
            tick, message = taken[0], str(error) or type(error).__name__
            _log.warning("trigger_tick_failed", trigger_id=tick.trigger_id, tick=tick.tick, error=message)
            await self._database.transact(lambda tx: rows.finish_tick(tx, tick, error=message))
            return False


def _timestamps(trigger: TriggerRow, timestamp_us: int, now_us: int) -> tuple[list[int], int | None]:
    if trigger.kind == "cron":
        return parse_cron(trigger.spec).due(timestamp_us, now_us)
    return [timestamp_us], None


def _parameters(tick: PendingTick) -> Mapping[str, Any]:
    """The parameters of the run: from the spec, otherwise from the event or the call."""
    wanted = tick.spec.get("parameters")
    if wanted is None:
        return tick.payload if tick.kind == "webhook" else {}
    scope = {
        "event": tick.payload,
        "trigger": {"id": tick.trigger_id, "name": tick.name, "tick": tick.tick, "due_ms": tick.due_at // 1_000},
    }
    rendered = templating.render(wanted, scope, "spec.parameters")
    return dict(rendered)
