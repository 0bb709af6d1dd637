"""Named secrets of chains: set, listed by name, deleted; never read back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from adjudge.chains.secrets import Keyring, check_name, check_value, used_by
from adjudge.domain.permissions import Permission
from adjudge.services.viewer import Viewer
from adjudge.settings import Settings
from adjudge.store import Database, Tx
from adjudge.store.chains import secrets
from adjudge.store.chains.secrets import SecretName
from adjudge.store.ops import audit_log


def keyring(settings: Settings) -> Keyring:
    """The encryption keys of secrets: from the setting, else from a file in the data folder."""
    return Keyring.of(settings.server.data_dir, settings.chains.secret_keys.reveal())


def require_use(viewer: Viewer, dag: Mapping[str, Any]) -> None:
    """Raise if the viewer saves a chain that refers to secrets and may not use them."""
    if used_by(dag):
        viewer.require(Permission.SECRET_USE)


@dataclass(frozen=True, slots=True)
class SecretService:
    """Named secrets of chains: set, list, delete. Values are never returned."""

    database: Database
    settings: Settings

    async def names(self) -> list[SecretName]:
        """All secrets, without their values."""
        return await self.database.read(secrets.names)

    async def put(self, viewer: Viewer, name: str, value: str) -> None:
        """Store a secret; the audit log contains only its name."""
        keys = keyring(self.settings)
        check_name(name)
        ciphertext = await asyncio.to_thread(keys.encrypt, name, check_value(value))

        async def write(tx: Tx) -> None:
            await secrets.put(tx, name, ciphertext, actor=viewer.id)
            await audit_log.record(
                tx, actor=viewer.id, action="secret.set", object_kind="secret", objects=[name], reason=""
            )

        await self.database.transact(write)
        while not await asyncio.to_thread(keys.is_newest, ciphertext):  # a key rotation may have missed the row
            stale, ciphertext = ciphertext, await asyncio.to_thread(keys.encrypt, name, value)
            replace = partial(secrets.replace, name=name, stale=stale, fresh=ciphertext)
            if not await self.database.transact(replace):
                return

    async def delete(self, viewer: Viewer, name: str) -> None:
        """Delete a secret; nodes that refer to it then fail."""

        async def write(tx: Tx) -> None:
            await secrets.delete(tx, name)
            await audit_log.record(
                tx, actor=viewer.id, action="secret.delete", object_kind="secret", objects=[name], reason=""
            )

        await self.database.transact(write)
