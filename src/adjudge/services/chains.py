"""Definitions of chains: create, change, apply from a file, enable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge.chains import apply
from adjudge.chains.apply import ChainApplyResult
from adjudge.chains.dag_cache import check_dag
from adjudge.chains.definition_file import ChainDefinition as ChainFile
from adjudge.chains.executor_registry import installed_executors
from adjudge.chains.map_node import expand_map_nodes
from adjudge.chains.triggers import TriggerCommands
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.domain.ids import IdFactory, new_id
from adjudge.services import chain_run_access, secrets
from adjudge.services.viewer import Viewer
from adjudge.store import Database, Tx
from adjudge.store.chains import definitions
from adjudge.store.chains.models import (
    ChainPage,
    ChainRow,
    ChainVersionRow,
)


@dataclass(frozen=True, slots=True)
class ChainDraft:
    """The requested definition of a chain."""

    name: str
    dag: Mapping[str, Any]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class ChainService:
    """Definitions of chains."""

    database: Database
    new_id: IdFactory = new_id

    def _validated_dag(self, viewer: Viewer, wanted: ChainDraft) -> Mapping[str, Any]:
        """Expand and validate the DAG, including the executors' schemas; all errors are reported together."""
        if not wanted.name.strip():
            raise InvalidInput("name: required.", field="name")
        dag: Mapping[str, Any] = expand_map_nodes(wanted.dag)
        check_dag(dag, installed_executors())
        secrets.require_use(viewer, dag)
        return dag

    async def create_chain(self, viewer: Viewer, wanted: ChainDraft, *, enabled: bool) -> ChainRow:
        dag = self._validated_dag(viewer, wanted)
        return await self.database.transact(
            lambda tx: definitions.create(
                tx,
                name=wanted.name.strip(),
                dag=dag,
                actor=viewer.id,
                description=wanted.description,
                enabled=enabled,
                authority=chain_run_access.authority_of(viewer),
                new_id=self.new_id,
            )
        )

    async def update_chain(self, viewer: Viewer, chain_id: str, wanted: ChainDraft, *, version: int) -> ChainRow:
        """Change a chain; existing runs keep their snapshot of the DAG."""
        dag = self._validated_dag(viewer, wanted)
        return await self.database.transact(
            lambda tx: definitions.update(
                tx,
                chain_id,
                version=version,
                name=wanted.name.strip(),
                dag=dag,
                actor=viewer.id,
                description=wanted.description,
                authority=chain_run_access.authority_of(viewer),
            )
        )

    async def apply_chain(self, viewer: Viewer, wanted: ChainFile) -> tuple[ChainApplyResult, ChainRow]:
        """Create or update a chain and its triggers to match a file, in one transaction."""
        plain = replace(wanted, dag=expand_map_nodes(wanted.dag))
        by = apply.Applicant(viewer.id, chain_run_access.authority_of(viewer))

        async def write(tx: Tx) -> tuple[ChainApplyResult, ChainRow]:
            check_dag(plain.dag, installed_executors())
            secrets.require_use(viewer, plain.dag)
            done = await apply.apply(tx, plain, installed_executors(), TriggerCommands(self.new_id), by=by)
            return done, await definitions.find(tx, done.chain_id)

        return await self.database.transact(write)

    async def set_chain_enabled(self, viewer: Viewer, chain_id: str, *, enabled: bool) -> ChainRow:
        return await self.database.transact(
            lambda tx: definitions.set_enabled(tx, chain_id, enabled=enabled, actor=viewer.id, reason="manual")
        )

    async def find_chain(self, chain: str) -> ChainRow:
        async def read(tx: Tx) -> ChainRow:
            try:
                return await definitions.find(tx, chain)
            except NotFound:
                return await definitions.find_by_name(tx, chain)

        return await self.database.read(read)

    async def list_versions(self, chain: str, *, before: int | None, limit: int) -> list[ChainVersionRow]:
        """Versions of a chain, newest first."""
        chain_id = (await self.find_chain(chain)).id
        return await self.database.read(lambda tx: definitions.list_versions(tx, chain_id, before=before, limit=limit))

    async def list_chains(self, *, page: int, size: int, keyword: str, enabled: bool | None) -> ChainPage:
        """A numbered page of chains."""
        return await self.database.read(
            lambda tx: definitions.page_number(tx, page=page, size=size, keyword=keyword, enabled=enabled)
        )
