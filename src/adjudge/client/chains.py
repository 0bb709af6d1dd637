"""Operations: chains, their triggers and secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.client.errors import BadResponseError
from adjudge.client.models import TriggerSpec
from adjudge.client.requests import fetch, fetch_list, get, path, post, query, send
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import HttpRequest, Program
from adjudge.schema.chains import ChainApplyRead, ChainRead, ChainSummary, ChainVersionRead, SecretInfo, TriggerRead


def chains(
    retry: ClientRetryPolicy, *, keyword: str = "", enabled: bool | None = None, page: int = 1, size: int = 20
) -> Program[tuple[ChainSummary, ...]]:
    """A numbered page of chains, by name, without their DAGs."""
    wanted = query(keyword=keyword, enabled=enabled, page=page, size=size)
    return (yield from fetch_list(ChainSummary, get(path("chains"), wanted), retry))


def chain(retry: ClientRetryPolicy, name: str) -> Program[ChainRead]:
    """One chain, by its name or id."""
    return (yield from fetch(ChainRead, get(path("chains", name)), retry))


def chain_version(retry: ClientRetryPolicy, name: str, version: int) -> Program[ChainVersionRead]:
    """A chain as it was at a version."""
    where = get(path("chains", name, "versions"), query(before=version + 1, limit=1))
    found = yield from fetch_list(ChainVersionRead, where, retry)
    if not found or found[0].version != version:
        raise BadResponseError(f"Chain {name} has no version {version}.")
    return found[0]


def chain_triggers(retry: ClientRetryPolicy, name: str) -> Program[tuple[TriggerRead, ...]]:
    """The triggers of a chain."""
    return (yield from fetch_list(TriggerRead, get(path("chains", name, "triggers")), retry))


def secrets(retry: ClientRetryPolicy) -> Program[tuple[SecretInfo, ...]]:
    """The names of the secrets that chains may use."""
    return (yield from fetch_list(SecretInfo, get(path("secrets")), retry))


def secret_set(retry: ClientRetryPolicy, name: str, value: str) -> Program[None]:
    """Set a secret; it cannot be read back."""
    yield from send(HttpRequest("PUT", path("secrets", name), {}, {"value": value}), retry)


def secret_delete(retry: ClientRetryPolicy, name: str) -> Program[None]:
    """Delete a secret."""
    yield from send(HttpRequest("DELETE", path("secrets", name)), retry)


def chain_apply(
    retry: ClientRetryPolicy,
    name: str,
    dag: Mapping[str, Any],
    *,
    description: str | None = None,
    enabled: bool = True,
    triggers: Sequence[TriggerSpec] = (),
) -> Program[ChainApplyRead]:
    """Create or update a chain and its triggers in one transaction.

    Triggers that are not given are deleted. ``enabled`` is used only when the chain is created: a disabled chain stays
    disabled. Raises ``ConflictError`` if the chain is changed concurrently; then apply it again.
    """
    wanted = {
        "name": name,
        "description": description,
        "dag": dict(dag),
        "enabled": enabled,
        "triggers": [
            {"name": item.name, "kind": item.kind, "spec": dict(item.spec), "enabled": item.enabled}
            for item in triggers
        ],
    }
    return (yield from fetch(ChainApplyRead, post(path("chains", action="apply"), wanted), retry))


def chain_set_enabled(retry: ClientRetryPolicy, name: str, *, enabled: bool) -> Program[ChainRead]:
    """Enable or disable a chain. Current runs continue."""
    action = "enable" if enabled else "disable"
    request = HttpRequest("POST", path("chains", name, action=action), is_repeatable=True)
    return (yield from fetch(ChainRead, request, retry))
