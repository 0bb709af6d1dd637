"""Operations: chains, their triggers, runs and nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.client.asking import asked, asked_all, asked_bytes, asked_page, done, get, path, post, post_once, query
from adjudge.client.errors import ApiError, Missing, Misunderstood, NotAllowed, NotLoggedIn, Unreachable, WaitedTooLong
from adjudge.client.reading import read
from adjudge.client.retrying import Patience
from adjudge.client.steps import Flow, Pause, Program, Request
from adjudge.client.streaming import Sent, events
from adjudge.client.values import (
    Applied,
    Chain,
    LogLine,
    NewTrigger,
    Node,
    Page,
    Run,
    RunStarted,
    SecretName,
    StoredFile,
    Trigger,
)

_LOOK_AGAIN_SEC: Final = 1.0
_FILE_SEC: Final = 300.0
"""How much longer than usual a file may take on its way."""


def chains(
    patience: Patience, *, keyword: str = "", enabled: bool | None = None, page: int = 1, size: int = 20
) -> Program[tuple[Chain, ...]]:
    """A numbered page of chains, by name, without their DAGs."""
    wanted = query(keyword=keyword, enabled=enabled, page=page, size=size)
    return (yield from asked_all(Chain, get(path("chains"), wanted), patience))


def chain(patience: Patience, name: str) -> Program[Chain]:
    """One chain, by its name or id."""
    return (yield from asked(Chain, get(path("chains", name)), patience))


def chain_version(patience: Patience, name: str, version: int) -> Program[Chain]:
    """A chain as it was at a version."""
    where = get(path("chains", name, "versions"), query(before=version + 1, limit=1))
    found = yield from asked_all(Chain, where, patience)
    if not found or found[0].version != version:
        raise Misunderstood(f"Chain {name} has no version {version}.")
    return found[0]


def chain_triggers(patience: Patience, name: str) -> Program[tuple[Trigger, ...]]:
    """What starts a chain by itself."""
    return (yield from asked_all(Trigger, get(path("chains", name, "triggers")), patience))


def secrets(patience: Patience) -> Program[tuple[SecretName, ...]]:
    """The names of the secrets that chains may use."""
    return (yield from asked_all(SecretName, get(path("secrets")), patience))


def secret_set(patience: Patience, name: str, value: str) -> Program[None]:
    """Set a secret; nobody can read it back."""
    yield from done(Request("PUT", path("secrets", name), {}, {"value": value}), patience)


def secret_delete(patience: Patience, name: str) -> Program[None]:
    """Delete a secret."""
    yield from done(Request("DELETE", path("secrets", name)), patience)


def chain_apply(
    patience: Patience,
    name: str,
    dag: Mapping[str, Any],
    *,
    description: str | None = None,
    enabled: bool = True,
    triggers: Sequence[NewTrigger] = (),
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
    return (yield from asked(Applied, post(path("chains", action="apply"), wanted), patience))


def chain_switch(patience: Patience, name: str, *, enabled: bool) -> Program[Chain]:
    """Let a chain be started, or no more; what runs goes on."""
    action = "enable" if enabled else "disable"
    request = Request("POST", path("chains", name, action=action), is_repeatable=True)
    return (yield from asked(Chain, request, patience))


# Runs.


def chain_start(
    patience: Patience,
    name: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    reason: str = "",
    key: str | None = None,
) -> Program[RunStarted]:
    """Start a chain; ``key`` makes one run of several calls."""
    body = {"parameters": dict(parameters or {}), "reason": reason}
    return (yield from asked(RunStarted, post_once(path("chains", name, action="start"), body, key), patience))


def runs(
    patience: Patience,
    *,
    chain: str | None = None,
    status: str | None = None,
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[Run]]:
    """A page of runs, the newest first."""
    wanted = query(chain=chain, status=status, cursor=cursor, limit=limit)
    return (yield from asked_page(Run, get(path("runs"), wanted), patience))


def run(patience: Patience, run_id: str) -> Program[Run]:
    """One run."""
    return (yield from asked(Run, get(path("runs", run_id)), patience))


def run_nodes(patience: Patience, run_id: str) -> Program[tuple[Node, ...]]:
    """The nodes of a run."""
    return (yield from asked_all(Node, get(path("runs", run_id, "nodes")), patience))


def node_log(
    patience: Patience, run_id: str, node_id: str, *, after: int = 0, limit: int = 500
) -> Program[tuple[LogLine, ...]]:
    """What a node wrote, from after a known line."""
    where = path("runs", run_id, "nodes", node_id, "log")
    return (yield from asked_all(LogLine, get(where, query(after=after, limit=limit)), patience))


def node_artifact(patience: Patience, run_id: str, node_id: str) -> Program[bytes]:
    """What a node left behind as JSON, however large; of a mapped node, the list of what its instances did."""
    return (yield from asked_bytes(get(path("runs", run_id, "nodes", node_id, "artifact")), patience))


def node_file(patience: Patience, run_id: str, node_id: str, digest: str) -> Program[bytes]:
    """A file that a node's artifact names."""
    asking = get(path("runs", run_id, "nodes", node_id, "files", digest), patience_sec=_FILE_SEC)
    return (yield from asked_bytes(asking, patience))


def file_store(patience: Patience, content: bytes) -> Program[StoredFile]:
    """Store a file that a run is to be given: name its digest in the parameters within a day."""
    request = Request("POST", path("files"), content=content, is_repeatable=True, patience_sec=_FILE_SEC)
    return (yield from asked(StoredFile, request, patience))


def node(patience: Patience, run_id: str, node_id: str) -> Program[Node]:
    """One node of a run."""
    return (yield from asked(Node, get(path("runs", run_id, "nodes", node_id)), patience))


def run_watch(patience: Patience, run_id: str) -> Flow[Run | Node]:
    """How a run and its nodes stand, then whatever changes, until it ends."""
    yield from _told(patience, run_id)


def run_wait(patience: Patience, run_id: str, *, timeout_sec: float | None = None) -> Program[Run]:
    """Wait until a run has ended; ``WaitedTooLong`` when the time is over."""
    until_sec = math.inf if timeout_sec is None else patience.clock() + timeout_sec
    try:
        yield from _told(patience, run_id, until_sec)
    except (NotLoggedIn, NotAllowed, Missing):
        raise
    except (Unreachable, Misunderstood, ApiError):
        pass  # something in between does not let streams through
    while not (found := (yield from run(patience, run_id))).is_over:
        if patience.clock() >= until_sec:
            raise WaitedTooLong(f"Run {run_id} is still {found.status}.")
        yield Pause(_LOOK_AGAIN_SEC)
    return found


def _told(patience: Patience, run_id: str, until_sec: float = math.inf) -> Flow[Run | Node]:
    last = yield from run(patience, run_id)

    def convert(sent: Sent) -> Run | Node:
        nonlocal last
        if sent.name == "node":
            return read(Node, sent.data)
        if sent.name == "run":
            last = read(Run, sent.data)
        return last

    yield from events(patience, path("runs", run_id, "events"), convert, until_sec=until_sec)


def run_stop(patience: Patience, run_id: str, *, reason: str = "") -> Program[Run]:
    """Stop a run."""
    yield from done(post(path("runs", run_id, action="stop"), {"reason": reason}), patience)
    return (yield from run(patience, run_id))


def run_rerun(
    patience: Patience, run_id: str, *, from_node: str | None = None, reason: str = "", key: str | None = None
) -> Program[RunStarted]:
    """Repeat a run, whole or from a node on."""
    body = {"from_node": from_node, "reason": reason}
    return (yield from asked(RunStarted, post_once(path("runs", run_id, action="rerun"), body, key), patience))


def node_retry(patience: Patience, run_id: str, node_id: str, *, reason: str = "") -> Program[Node]:
    """Retry a failed or stopped node."""
    request = post(path("runs", run_id, "nodes", node_id, action="retry"), {"reason": reason})
    return (yield from asked(Node, request, patience))


def node_complete(
    patience: Patience, run_id: str, node_id: str, *, artifact: Any = None, reason: str = ""
) -> Program[Node]:
    """Declare a node done."""
    body = {"artifact": artifact, "reason": reason}
    return (yield from asked(Node, post(path("runs", run_id, "nodes", node_id, action="complete"), body), patience))


def node_decide(patience: Patience, run_id: str, node_id: str, *, approved: bool, reason: str) -> Program[Node]:
    """Approve a node that waits for approval."""
    body = {"approved": approved, "reason": reason}
    return (yield from asked(Node, post(path("runs", run_id, "nodes", node_id, action="decide"), body), patience))
