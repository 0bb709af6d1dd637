"""Triggers of chains: create, change, delete, and calls of webhook triggers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.chains.triggers import CreatedTrigger, TriggerCommands
from adjudge.domain.errors import InvalidInput
from adjudge.domain.ids import IdFactory, new_id
from adjudge.services import chain_run_access
from adjudge.services.chains import ChainService
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.chains import triggers as chain_triggers
from adjudge.store.chains.triggers import TriggerRow
from adjudge.store.ops import audit_log


@dataclass(frozen=True, slots=True)
class ChainTriggerService:
    """Triggers of chains."""

    database: Database
    chains: ChainService
    new_id: IdFactory = new_id

    async def list_triggers(self, chain: str) -> list[TriggerRow]:
        chain_id = (await self.chains.find_chain(chain)).id
        return await self.database.read(lambda tx: chain_triggers.list_by_chain(tx, chain_id))

    async def create_trigger(
        self, viewer: Viewer, chain: str, *, name: str, kind: str, spec: Mapping[str, Any], enabled: bool
    ) -> tuple[TriggerRow, str | None]:
        """Create a trigger; the secret of a webhook trigger is returned once."""
        chain_id = (await self.chains.find_chain(chain)).id

        async def write(tx: Tx) -> tuple[TriggerRow, CreatedTrigger]:
            made = await TriggerCommands(self.new_id).create(
                tx,
                chain_id=chain_id,
                name=name,
                kind=kind,
                spec=spec,
                actor=viewer.id,
                authority=chain_run_access.authority_of(viewer),
                enabled=enabled,
            )
            details = {chain_id: {"trigger": made.trigger_id, "kind": kind}}
            await audit_log.record(
                tx, actor=viewer.id, action="trigger.create", object_kind="chain", objects=details, reason=""
            )
            return await chain_triggers.find(tx, made.trigger_id), made

        trigger, made = await self.database.transact(write)
        return trigger, made.secret

    async def update_trigger(
        self,
        viewer: Viewer,
        trigger_id: str,
        *,
        version: int,
        spec: Mapping[str, Any] | None,
        enabled: bool | None,
    ) -> TriggerRow:
        """Change a trigger, guarded by its version."""

        async def write(tx: Tx) -> TriggerRow:
            changed = await TriggerCommands(self.new_id).update(
                tx,
                trigger_id,
                version=version,
                spec=spec,
                enabled=enabled,
                authority=chain_run_access.authority_of(viewer),
            )
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="trigger.update",
                object_kind="chain",
                objects={changed.chain_id: {"trigger": trigger_id}},
                reason="",
            )
            return changed

        return await self.database.transact(write)

    async def delete_trigger(self, viewer: Viewer, trigger_id: str) -> None:
        async def write(tx: Tx) -> None:
            current = await chain_triggers.find(tx, trigger_id)
            await chain_triggers.delete(tx, trigger_id)
            await audit_log.record(
                tx,
                actor=viewer.id,
                action="trigger.remove",
                object_kind="chain",
                objects={current.chain_id: {"trigger": trigger_id}},
                reason="",
            )

        await self.database.transact(write)

    async def call_trigger(self, trigger_id: str, *, secret: str, key: str | None, payload: Any) -> str:
        """Accept a call to a webhook trigger with its secret."""
        if not isinstance(payload, Mapping):
            raise InvalidInput("body: expected a JSON object.", field="body")
        return await self.database.transact(
            lambda tx: TriggerCommands(self.new_id).handle_webhook_call(
                tx, trigger_id, secret=secret, key=key, payload=payload
            )
        )
