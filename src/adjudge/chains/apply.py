"""Applies chain files: creates new chains, updates changed ones, and leaves the others unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from adjudge.chains.dag_cache import NodeTypes, check_dag
from adjudge.chains.definition_file import ChainDefinition, TriggerDefinition, check_unique_trigger_names
from adjudge.chains.triggers import TriggerCommands, user_spec
from adjudge.domain.authority import Authority
from adjudge.domain.errors import NotFound
from adjudge.store import Tx
from adjudge.store.chains import definitions
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.chains.models import ChainRow
from adjudge.store.chains.triggers import TriggerRow
from adjudge.store.ops import audit_log

ApplyAction = Literal["created", "changed", "unchanged"]
TriggerApplyAction = Literal["created", "changed", "unchanged", "removed"]


@dataclass(frozen=True, slots=True)
class ChainApplyResult:
    """The result of applying a file."""

    chain_id: str
    version: int
    outcome: ApplyAction
    triggers: Mapping[str, TriggerApplyAction] = field(default_factory=dict)
    """By name."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The secrets of new webhooks by trigger name; shown once."""


@dataclass(frozen=True, slots=True)
class Applicant:
    """The user who applies a file: the name for the history, and the authority."""

    actor: str
    authority: Authority | None = None


async def apply(
    tx: Tx, definition: ChainDefinition, types: NodeTypes, triggers: TriggerCommands, *, by: Applicant
) -> ChainApplyResult:
    """Apply the file in one transaction; triggers that are not in the file are deleted.

    Applying the same file twice changes nothing. ``enabled`` is used only when the chain is created: a disabled chain
    stays disabled.
    """
    check_dag(definition.dag, types)
    check_unique_trigger_names(definition.triggers)
    chain, outcome = await _chain(tx, definition, by)
    current = {trigger.name: trigger for trigger in await chain_triggers.list_by_chain(tx, chain.id)}
    done, secrets = dict[str, TriggerApplyAction](), dict[str, str]()
    wanted = {item.name for item in definition.triggers}
    for name, trigger in current.items():
        if name not in wanted:
            await chain_triggers.delete(tx, trigger.id)
            done[name] = "removed"
    for item in definition.triggers:
        done[item.name], secret = await _trigger(
            tx, triggers, item, chain_id=chain.id, current=current.get(item.name), by=by
        )
        if secret is not None:
            secrets[item.name] = secret
    await definitions.vouch(tx, chain.id, by.authority)  # also for unchanged ones: the user has just saved them
    await chain_triggers.vouch(tx, chain.id, by.authority)
    changes = {name: what for name, what in done.items() if what != "unchanged"}
    if changes:
        details = {chain.id: {"triggers": changes}}
        await audit_log.record(tx, actor=by.actor, action="apply", object_kind="chain", objects=details, reason="")
    return ChainApplyResult(chain.id, chain.version, outcome, done, secrets)


async def _chain(tx: Tx, wanted: ChainDefinition, by: Applicant) -> tuple[ChainRow, ApplyAction]:
    try:
        current = await definitions.find_by_name(tx, wanted.name)
    except NotFound:
        made = await definitions.create(
            tx,
            name=wanted.name,
            dag=wanted.dag,
            actor=by.actor,
            authority=by.authority,
            description=wanted.description,
            enabled=wanted.enabled,
        )
        return made, "created"
    if current.dag == wanted.dag and current.description == wanted.description:
        return current, "unchanged"
    changed = await definitions.update(
        tx,
        current.id,
        version=current.version,
        name=wanted.name,
        dag=wanted.dag,
        actor=by.actor,
        authority=by.authority,
        description=wanted.description,
    )
    return changed, "changed"


async def _trigger(
    tx: Tx,
    triggers: TriggerCommands,
    wanted: TriggerDefinition,
    *,
    chain_id: str,
    current: TriggerRow | None,
    by: Applicant,
) -> tuple[ApplyAction, str | None]:
    if current is not None and current.kind != wanted.kind:
        await chain_triggers.delete(tx, current.id)
        current = None
    if current is None:
        created = await triggers.create(
            tx,
            chain_id=chain_id,
            name=wanted.name,
            kind=wanted.kind,
            spec=wanted.spec,
            actor=by.actor,
            authority=by.authority,
            enabled=wanted.enabled,
        )
        return "created", created.secret
    if user_spec(current) == dict(wanted.spec):
        return "unchanged", None
    await triggers.update(tx, current.id, version=current.version, spec=wanted.spec, authority=by.authority)
    return "changed", None
