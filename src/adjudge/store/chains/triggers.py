"""Triggers of chains and their ticks.

A *tick* is one reason to start one run: a time of a cron trigger, an event, a webhook call. Its row is written in the
transaction that causes it (the one that publishes the problem, or advances the cron trigger). A scheduler starts the
run later. So an event adds at most two statements to its transaction and never fails because of a chain. A tick starts
exactly one run: its row exists once, is taken once, and contains the idempotency key of the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from adjudge.domain.authority import Authority, authority_to_json
from adjudge.domain.errors import NotFound, VersionConflict
from adjudge.domain.ids import new_id
from adjudge.store.accounts.users import actor_name
from adjudge.store.chains.models import PendingTick, TriggerTick
from adjudge.store.engine.driver import Tx, fetch_one, or_not_found
from adjudge.store.engine.statement import Statement

CHANNEL_TRIGGERS: Final = "chain_triggers"
"""Notified when a tick waits."""
PROBLEM_PUBLISHED: Final = "problem.published"
CONTEST_EVENTS: Final[Mapping[str, str]] = {
    "start": "contest.started",
    "freeze": "contest.frozen",
    "end": "contest.ended",
    "thaw": "contest.thawed",
    "finalize": "contest.finalized",
}
"""Announced transition of a contest → event."""
REJUDGE_APPLIED: Final = "rejudge.applied"
CHAIN_FINISHED: Final = "chain.finished"
EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    PROBLEM_PUBLISHED: ("problem_id", "slug", "revision"),
    **dict.fromkeys(CONTEST_EVENTS.values(), ("contest_id", "contest")),
    REJUDGE_APPLIED: ("batch_id", "changed", "skipped"),
}
"""The events of event triggers, and their fields. The end of a chain run has its own kind of trigger."""


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """One trigger, from its row."""

    id: str
    chain_id: str
    name: str
    kind: str
    spec: Mapping[str, Any]
    event: str | None
    secret_hash: str | None
    enabled: bool
    next_at: int | None
    last_tick: str | None
    last_error: str | None
    version: int
    created_by: str | None
    created_at: int


@dataclass(frozen=True, slots=True)
class NewTrigger:
    """A trigger to be created."""

    id: str
    chain_id: str
    name: str
    kind: str
    spec: Mapping[str, Any]
    event: str | None = None
    secret_hash: str | None = None
    enabled: bool = True
    next_at: int | None = None
    created_by: str | None = None
    authority: Authority | None = None


class _DueTrigger(NamedTuple):
    trigger: TriggerRow
    now_us: int


class _ChainTrigger(NamedTuple):
    id: str
    chain_id: str
    spec: Mapping[str, Any]


_CREATED_BY = {"created_by": actor_name("created_by")}

INSERT = Statement(
    "chain_triggers.insert",
    "Create a trigger.",
    """
    INSERT INTO chain_triggers (id, chain_id, name, kind, spec, event, secret_hash, enabled, next_at, created_by,
                                authority, created_at, updated_at)
    VALUES (:id, :chain_id, :name, :kind, :spec, :event, :secret_hash, :enabled, :next_at, :created_by,
            :authority, {now}, {now})
    """,
)
SELECT = Statement(
    "chain_triggers.select",
    "Read one trigger.",
    "SELECT {columns} FROM chain_triggers WHERE id = :id",
    row=TriggerRow,
    columns=_CREATED_BY,
)
SELECT_BY_CHAIN = Statement(
    "chain_triggers.select_by_chain",
    "List the triggers of a chain by name.",
    "SELECT {columns} FROM chain_triggers WHERE chain_id = :chain_id ORDER BY name",
    row=TriggerRow,
    columns=_CREATED_BY,
)
SELECT_BY_EVENT = Statement(
    "chain_triggers.select_by_event",
    "Find the triggers that listen for an event.",
    "SELECT {columns} FROM chain_triggers WHERE event = :event AND enabled ORDER BY id",
    row=TriggerRow,
    columns=_CREATED_BY,
)
UPDATE = Statement(
    "chain_triggers.update",
    "Update a trigger if its version is unchanged.",
    """
    UPDATE chain_triggers SET spec = :spec, event = :event, enabled = :enabled, next_at = :next_at,
        secret_hash = :secret_hash, authority = :authority, last_error = NULL, version = version + 1,
        updated_at = {now}
    WHERE id = :id AND version = :version
    RETURNING version
    """,
)
VOUCH = Statement(
    "chain_triggers.vouch",
    "Record the authority of the triggers of a chain that are saved unchanged.",
    "UPDATE chain_triggers SET authority = :authority WHERE chain_id = :chain_id",
)
DELETE = Statement(
    "chain_triggers.delete", "Delete a trigger and its ticks.", "DELETE FROM chain_triggers WHERE id = :id"
)
NOW = Statement("chain_triggers.now", "Read the database clock.", "SELECT {now} AS now_us")

LOCK_DUE = Statement(
    "chain_triggers.lock_due",
    "Lock due triggers, skipping those that another scheduler holds.",
    """
    SELECT {columns} FROM chain_triggers WHERE enabled AND next_at <= {now} ORDER BY next_at LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """,
    row=_DueTrigger,
    columns={**_CREATED_BY, "now_us": "{now}"},
)
SET_NEXT_TIME = Statement(
    "chain_triggers.set_next_time",
    "Set the next due time of triggers unless it has changed.",
    """
    UPDATE chain_triggers SET next_at = given_next_at, last_tick = COALESCE(given_last_tick, last_tick),
        updated_at = {now}
    FROM {given}
    WHERE id = given_id AND next_at = given_was_at
    """,
    input_columns={"given_id": "text", "given_was_at": "bigint", "given_next_at": "bigint", "given_last_tick": "text"},
)
DISABLE_WITH_ERROR = Statement(
    "chain_triggers.disable_with_error",
    "Disable a trigger whose schedule is invalid, with the error.",
    "UPDATE chain_triggers SET enabled = :off, last_error = :error, updated_at = {now} WHERE id = :id",
)
INSERT_TICKS = Statement(
    "chain_triggers.insert_ticks",
    "Insert ticks; an existing tick is left unchanged.",
    """
    INSERT INTO chain_trigger_ticks (trigger_id, tick, due_at, payload, created_at)
    SELECT given_trigger_id, given_tick, COALESCE(given_due_at, {now}), given_payload, {now} FROM {given}
    WHERE given_trigger_id IS NOT NULL
    ON CONFLICT (trigger_id, tick) DO NOTHING
    """,
    input_columns={
        "given_trigger_id": "text",
        "given_tick": "text",
        "given_due_at": "bigint",
        "given_payload": "jsonb",
    },
)

LOCK_TICK = Statement(
    "chain_triggers.lock_tick",
    "Lock the oldest pending tick, skipping those that another scheduler holds.",
    """
    SELECT {columns}
    FROM chain_trigger_ticks JOIN chain_triggers ON chain_triggers.id = trigger_id
    JOIN chains ON chains.id = chain_id
    WHERE state = 'pending' ORDER BY due_at, tick LIMIT 1
    FOR UPDATE OF chain_trigger_ticks SKIP LOCKED
    """,
    row=PendingTick,
    columns={
        "name": "chain_triggers.name",
        "trigger_authority": "chain_triggers.authority",
        "chain_authority": "chains.authority",
    },
)
FINISH_TICK = Statement(
    "chain_triggers.finish_tick",
    "Record the result of a pending tick.",
    """
    UPDATE chain_trigger_ticks SET state = :state, run_id = :run_id, error = :error, settled_at = {now}
    WHERE trigger_id = :trigger_id AND tick = :tick AND state = 'pending'
    """,
)
SET_LAST_TICK = Statement(
    "chain_triggers.set_last_tick",
    "Record on a trigger the result of its last tick.",
    "UPDATE chain_triggers SET last_error = :error, last_tick = :tick, updated_at = {now} WHERE id = :id",
)
DELETE_OLD_TICKS = Statement(
    "chain_triggers.delete_old_ticks",
    "Delete ticks finished before the retention period.",
    """
    DELETE FROM chain_trigger_ticks WHERE (trigger_id, tick) IN (
        SELECT trigger_id, tick FROM chain_trigger_ticks
        WHERE state <> 'pending' AND settled_at < {now} - CAST(:older_than_us AS bigint) LIMIT :limit)
    """,
)
SELECT_CHAIN_EDGES = Statement(
    "chain_triggers.select_chain_edges",
    "List which chain's end starts which chain.",
    "SELECT {columns} FROM chain_triggers WHERE event = :event",
    row=_ChainTrigger,
)


async def now_us(tx: Tx) -> int:
    """The database's clock."""
    (row,) = await tx.fetch(NOW)
    return int(row["now_us"])


async def insert(tx: Tx, trigger: NewTrigger) -> None:
    """Create a trigger; a name that exists in the chain is a CONFLICT."""
    await tx.execute(
        INSERT,
        id=trigger.id,
        chain_id=trigger.chain_id,
        name=trigger.name,
        kind=trigger.kind,
        spec=json.dumps(trigger.spec),
        event=trigger.event,
        secret_hash=trigger.secret_hash,
        enabled=trigger.enabled,
        next_at=trigger.next_at,
        created_by=trigger.created_by,
        authority=authority_to_json(trigger.authority),
    )


async def vouch(tx: Tx, chain_id: str, authority: Authority | None) -> None:
    """Record a new authority of the triggers of a chain that are saved unchanged."""
    await tx.execute(VOUCH, chain_id=chain_id, authority=authority_to_json(authority))


async def find(tx: Tx, trigger_id: str) -> TriggerRow:
    return or_not_found(await fetch_one(tx, SELECT, id=trigger_id), "trigger", trigger_id)


async def list_by_chain(tx: Tx, chain_id: str) -> list[TriggerRow]:
    return await tx.fetch(SELECT_BY_CHAIN, chain_id=chain_id)


async def update(tx: Tx, trigger: TriggerRow, authority: Authority | None) -> int:
    """Update a trigger if its version is unchanged, with the authority of the caller; return the new one."""
    row = await fetch_one(
        tx,
        UPDATE,
        id=trigger.id,
        version=trigger.version,
        spec=json.dumps(trigger.spec),
        event=trigger.event,
        enabled=trigger.enabled,
        next_at=trigger.next_at,
        secret_hash=trigger.secret_hash,
        authority=authority_to_json(authority),
    )
    if row is None:
        await find(tx, trigger.id)
        raise VersionConflict("The trigger changed meanwhile; read it again, then decide.", trigger_id=trigger.id)
    return int(row["version"])


async def delete(tx: Tx, trigger_id: str) -> None:
    """Delete a trigger. Runs that it started are kept."""
    if not await tx.execute(DELETE, id=trigger_id):
        raise NotFound("trigger", trigger_id)


async def find_by_event(tx: Tx, event: str) -> list[TriggerRow]:
    return await tx.fetch(SELECT_BY_EVENT, event=event)


async def fire_event(
    tx: Tx, event: str, payload: Mapping[str, Any], *, key: str | None = None, due_at: int | None = None
) -> int:
    """Insert ticks for an event, in its transaction; return how many triggers it ticks.

    ``key`` identifies an event that may be reported twice: the same key ticks a trigger once. ``due_at`` is the time of
    an event that is noticed later; triggers that were created after it are not ticked.
    """
    tick = key or new_id()
    ticks = [
        TriggerTick(trigger.id, tick, due_at, payload)
        for trigger in await find_by_event(tx, event)
        if matches_filter(trigger.spec.get("filter"), payload) and (due_at is None or trigger.created_at < due_at)
    ]
    await add_ticks(tx, ticks)
    return len(ticks)


def matches_filter(wanted: Mapping[str, Any] | None, payload: Mapping[str, Any]) -> bool:
    """Whether every field of a filter has the value, or one of the values, that the filter requires."""
    for name, value in (wanted or {}).items():
        allowed = value if isinstance(value, list) else [value]
        if payload.get(name) not in allowed:
            return False
    return True


async def add_ticks(tx: Tx, ticks: Sequence[TriggerTick]) -> int:
    """Insert ticks and notify the schedulers; return how many were new."""
    if not ticks:
        return 0
    rows = [(item.trigger_id, item.tick, item.due_at, json.dumps(item.payload or {})) for item in ticks]
    added = await tx.execute(INSERT_TICKS, rows)
    tx.notify(CHANNEL_TRIGGERS)
    return added


async def take_due(tx: Tx, limit: int) -> tuple[int, list[TriggerRow]]:
    """The database clock, and due triggers, locked until this transaction ends."""
    due = await tx.fetch(LOCK_DUE, limit=limit)
    return (due[0].now_us if due else 0), [item.trigger for item in due]


async def set_next_times(tx: Tx, moves: Sequence[tuple[str, int, int | None, str | None]]) -> int:
    """Set the next times: trigger, the previous time, the next one, its last tick."""
    return await tx.execute(SET_NEXT_TIME, moves) if moves else 0


async def disable_with_error(tx: Tx, trigger_id: str, error: str) -> None:
    """Disable a trigger that cannot continue."""
    await tx.execute(DISABLE_WITH_ERROR, id=trigger_id, off=False, error=error)


async def take_tick(tx: Tx) -> PendingTick | None:
    """The oldest waiting tick, locked until this transaction ends."""
    return await fetch_one(tx, LOCK_TICK)


async def finish_tick(tx: Tx, tick: PendingTick, *, run_id: str | None = None, error: str | None = None) -> bool:
    """Record that a tick started a run, or why it failed; False if that was recorded already."""
    state = "started" if error is None else "failed"
    changed = await tx.execute(
        FINISH_TICK, trigger_id=tick.trigger_id, tick=tick.tick, state=state, run_id=run_id, error=error
    )
    if changed:
        await tx.execute(SET_LAST_TICK, id=tick.trigger_id, tick=tick.tick, error=error)
    return bool(changed)


async def delete_old_ticks(tx: Tx, *, older_than_ms: int, limit: int = 500) -> int:
    """Delete old ticks that were processed."""
    return await tx.execute(DELETE_OLD_TICKS, older_than_us=older_than_ms * 1_000, limit=limit)


async def chain_edges(tx: Tx, *, except_id: str | None = None) -> list[tuple[str, str]]:
    """Which chain's end starts which chain, by id; one trigger may be left out."""
    triggers = await tx.fetch(SELECT_CHAIN_EDGES, event=CHAIN_FINISHED)
    return [(item.spec["filter"]["chain_id"], item.chain_id) for item in triggers if item.id != except_id]
