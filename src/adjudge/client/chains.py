"""Operations: chains, their triggers, runs and nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.client.decode import decode
from adjudge.client.errors import (
    ApiError,
    AuthenticationError,
    BadResponseError,
    NotFoundError,
    PermissionDeniedError,
    UnreachableError,
    WaitTimeoutError,
)
from adjudge.client.models import (
    Applied,
    Chain,
    LogLine,
    Node,
    Page,
    Run,
    RunStarted,
    SecretName,
    StoredFile,
    Trigger,
    TriggerSpec,
)
from adjudge.client.requests import (
    fetch,
    fetch_bytes,
    fetch_list,
    fetch_page,
    get,
    path,
    post,
    post_idempotent,
    query,
    send,
)
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Delay, Flow, HttpRequest, Program
from adjudge.client.sse import ServerSentEvent, events

_LOOK_AGAIN_SEC: Final = 1.0
_FILE_SEC: Final = 300.0
"""How much longer than usual a file may take on its way."""


def chains(
    patience: ClientRetryPolicy, *, keyword: str = "", enabled: bool | None = None, page: int = 1, size: int = 20
) -> Program[tuple[Chain, ...]]:
    """A numbered page of chains, by name, without their DAGs."""
    wanted = query(keyword=keyword, enabled=enabled, page=page, size=size)
    return (yield from fetch_list(Chain, get(path("chains"), wanted), patience))


def chain(patience: ClientRetryPolicy, name: str) -> Program[Chain]:
    """One chain, by its name or id."""
    return (yield from fetch(Chain, get(path("chains", name)), patience))


def chain_version(patience: ClientRetryPolicy, name: str, version: int) -> Program[Chain]:
    """A chain as it was at a version."""
    where = get(path("chains", name, "versions"), query(before=version + 1, limit=1))
    found = yield from fetch_list(Chain, where, patience)
    if not found or found[0].version != version:
        raise BadResponseError(f"Chain {name} has no version {version}.")
    return found[0]


def chain_triggers(patience: ClientRetryPolicy, name: str) -> Program[tuple[Trigger, ...]]:
    """What starts a chain by itself."""
    return (yield from fetch_list(Trigger, get(path("chains", name, "triggers")), patience))


def secrets(patience: ClientRetryPolicy) -> Program[tuple[SecretName, ...]]:
    """The names of the secrets that chains may use."""
    return (yield from fetch_list(SecretName, get(path("secrets")), patience))


def secret_set(patience: ClientRetryPolicy, name: str, value: str) -> Program[None]:
    """Set a secret; nobody can read it back."""
    yield from send(HttpRequest("PUT", path("secrets", name), {}, {"value": value}), patience)


def secret_delete(patience: ClientRetryPolicy, name: str) -> Program[None]:
    """Delete a secret."""
    yield from send(HttpRequest("DELETE", path("secrets", name)), patience)


def chain_apply(
    patience: ClientRetryPolicy,
    name: str,
    dag: Mapping[str, Any],
    *,
    description: str | None = None,
    enabled: bool = True,
    triggers: Sequence[TriggerSpec] = (),
) -> Program[Applied]:
    """Make the server's chain as it is given here: what is new is created, what differs changed, the rest stays.

    All of it is done, or nothing. Triggers that are not given are removed. ``enabled`` counts when the chain is
    created: one that somebody switched off stays off. ``Conflicting`` where somebody else changes it in the meantime:
    apply it again.
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
    return (yield from fetch(Applied, post(path("chains", action="apply"), wanted), patience))


def chain_set_enabled(patience: ClientRetryPolicy, name: str, *, enabled: bool) -> Program[Chain]:
    """Let a chain be started, or no more; what runs goes on."""
    action = "enable" if enabled else "disable"
    request = HttpRequest("POST", path("chains", name, action=action), is_repeatable=True)
    return (yield from fetch(Chain, request, patience))


# Runs.


def chain_start(
    patience: ClientRetryPolicy,
    name: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    reason: str = "",
    key: str | None = None,
) -> Program[RunStarted]:
    """Start a chain; ``key`` makes one run of several calls."""
    body = {"parameters": dict(parameters or {}), "reason": reason}
    return (yield from fetch(RunStarted, post_idempotent(path("chains", name, action="start"), body, key), patience))


def runs(
    patience: ClientRetryPolicy,
    *,
    chain: str | None = None,
    status: str | None = None,
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[Run]]:
    """A page of runs, the newest first."""
    wanted = query(chain=chain, status=status, cursor=cursor, limit=limit)
    return (yield from fetch_page(Run, get(path("runs"), wanted), patience))


def run(patience: ClientRetryPolicy, run_id: str) -> Program[Run]:
    """One run."""
    return (yield from fetch(Run, get(path("runs", run_id)), patience))


def run_nodes(patience: ClientRetryPolicy, run_id: str) -> Program[tuple[Node, ...]]:
    """The nodes of a run."""
    return (yield from fetch_list(Node, get(path("runs", run_id, "nodes")), patience))


def node_log(
    patience: ClientRetryPolicy, run_id: str, node_id: str, *, after: int = 0, limit: int = 500
) -> Program[tuple[LogLine, ...]]:
    """What a node wrote, from after a known line."""
    where = path("runs", run_id, "nodes", node_id, "log")
    return (yield from fetch_list(LogLine, get(where, query(after=after, limit=limit)), patience))


def node_artifact(patience: ClientRetryPolicy, run_id: str, node_id: str) -> Program[bytes]:
    """What a node left behind as JSON, however large; of a mapped node, the list of what its instances did."""
    return (yield from fetch_bytes(get(path("runs", run_id, "nodes", node_id, "artifact")), patience))


def node_file(patience: ClientRetryPolicy, run_id: str, node_id: str, digest: str) -> Program[bytes]:
    """A file that a node's artifact names."""
    asking = get(path("runs", run_id, "nodes", node_id, "files", digest), patience_sec=_FILE_SEC)
    return (yield from fetch_bytes(asking, patience))


def file_upload(patience: ClientRetryPolicy, content: bytes) -> Program[StoredFile]:
    """Store a file that a run is to be given: name its digest in the parameters within a day."""
    request = HttpRequest("POST", path("files"), content=content, is_repeatable=True, patience_sec=_FILE_SEC)
    return (yield from fetch(StoredFile, request, patience))


def node(patience: ClientRetryPolicy, run_id: str, node_id: str) -> Program[Node]:
    """One node of a run."""
    return (yield from fetch(Node, get(path("runs", run_id, "nodes", node_id)), patience))


def run_watch(patience: ClientRetryPolicy, run_id: str) -> Flow[Run | Node]:
    """How a run and its nodes stand, then whatever changes, until it ends."""
    yield from _watch_until(patience, run_id)


def run_wait(patience: ClientRetryPolicy, run_id: str, *, timeout_sec: float | None = None) -> Program[Run]:
    """Wait until a run has ended; ``WaitedTooLong`` when the time is over."""
    until_sec = math.inf if timeout_sec is None else patience.clock() + timeout_sec
    try:
        yield from _watch_until(patience, run_id, until_sec)
    except (AuthenticationError, PermissionDeniedError, NotFoundError):
        raise
    except (UnreachableError, BadResponseError, ApiError):
        pass  # something in between does not let streams through
    while not (found := (yield from run(patience, run_id))).is_finished:
        if patience.clock() >= until_sec:
            raise WaitTimeoutError(f"Run {run_id} is still {found.status}.")
        yield Delay(_LOOK_AGAIN_SEC)
    return found


def _watch_until(patience: ClientRetryPolicy, run_id: str, until_sec: float = math.inf) -> Flow[Run | Node]:
    last = yield from run(patience, run_id)

    def convert(sent: ServerSentEvent) -> Run | Node:
        nonlocal last
        if sent.name == "node":
            return decode(Node, sent.data)
        if sent.name == "run":
            last = decode(Run, sent.data)
        return last

    yield from events(patience, path("runs", run_id, "events"), convert, until_sec=until_sec)


def run_stop(patience: ClientRetryPolicy, run_id: str, *, reason: str = "") -> Program[Run]:
    """Stop a run."""
    yield from send(post(path("runs", run_id, action="stop"), {"reason": reason}), patience)
    return (yield from run(patience, run_id))


def run_rerun(
    patience: ClientRetryPolicy, run_id: str, *, from_node: str | None = None, reason: str = "", key: str | None = None
) -> Program[RunStarted]:
    """Repeat a run, whole or from a node on."""
    body = {"from_node": from_node, "reason": reason}
    return (yield from fetch(RunStarted, post_idempotent(path("runs", run_id, action="rerun"), body, key), patience))


def node_retry(patience: ClientRetryPolicy, run_id: str, node_id: str, *, reason: str = "") -> Program[Node]:
    """Retry a failed or stopped node."""
    request = post(path("runs", run_id, "nodes", node_id, action="retry"), {"reason": reason})
    return (yield from fetch(Node, request, patience))


def node_complete(
    patience: ClientRetryPolicy, run_id: str, node_id: str, *, artifact: Any = None, reason: str = ""
) -> Program[Node]:
    """Declare a node done."""
    body = {"artifact": artifact, "reason": reason}
    return (yield from fetch(Node, post(path("runs", run_id, "nodes", node_id, action="complete"), body), patience))


def node_approve(
    patience: ClientRetryPolicy, run_id: str, node_id: str, *, approved: bool, reason: str
) -> Program[Node]:
    """Approve or reject a node that waits for approval."""
    request = post(
        path("runs", run_id, "nodes", node_id, action="approve" if approved else "reject"), {"reason": reason}
    )
    return (yield from fetch(Node, request, patience))
