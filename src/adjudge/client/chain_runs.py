"""Operations: chain runs, their nodes, logs, artifacts and files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from adjudge.client.decode import decode
from adjudge.client.models import Page
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
from adjudge.client.sans_io import Flow, HttpRequest, Program
from adjudge.client.sse import ServerSentEvent, events, wait_until_finished
from adjudge.schema.chain_runs import ChainRunRead, ChainRunStarted, FileCreated, NodeLogLineRead, NodeRead

_TRANSFER_SEC: Final = 300.0
"""Additional time for uploading or downloading a file."""


def chain_start(
    retry: ClientRetryPolicy,
    name: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    reason: str = "",
    key: str | None = None,
) -> Program[ChainRunStarted]:
    """Start a run. Calls with the same ``key`` start one run."""
    body = {"parameters": dict(parameters or {}), "reason": reason}
    return (yield from fetch(ChainRunStarted, post_idempotent(path("chains", name, action="start"), body, key), retry))


def runs(
    retry: ClientRetryPolicy,
    *,
    chain: str | None = None,
    status: str | None = None,
    cursor: str | None = None,
    limit: int = 20,
) -> Program[Page[ChainRunRead]]:
    """A page of runs, newest first."""
    wanted = query(chain=chain, status=status, cursor=cursor, limit=limit)
    return (yield from fetch_page(ChainRunRead, get(path("runs"), wanted), retry))


def run(retry: ClientRetryPolicy, run_id: str) -> Program[ChainRunRead]:
    """One run."""
    return (yield from fetch(ChainRunRead, get(path("runs", run_id)), retry))


def run_by_number(retry: ClientRetryPolicy, chain: str, number: int) -> Program[ChainRunRead]:
    """The run that has a number in its chain."""
    return (yield from fetch(ChainRunRead, get(path("chains", chain, "runs", str(number))), retry))


def run_nodes(retry: ClientRetryPolicy, run_id: str) -> Program[tuple[NodeRead, ...]]:
    """The nodes of a run."""
    return (yield from fetch_list(NodeRead, get(path("runs", run_id, "nodes")), retry))


def node_log(
    retry: ClientRetryPolicy, run_id: str, node_id: str, *, after: int = 0, limit: int = 500
) -> Program[tuple[NodeLogLineRead, ...]]:
    """The log of a node, after the line with ID ``after``."""
    where = path("runs", run_id, "nodes", node_id, "log")
    return (yield from fetch_list(NodeLogLineRead, get(where, query(after=after, limit=limit)), retry))


def node_artifact(retry: ClientRetryPolicy, run_id: str, node_id: str) -> Program[bytes]:
    """The artifact of a node as JSON; of a mapped node, the list of the artifacts of its instances."""
    return (yield from fetch_bytes(get(path("runs", run_id, "nodes", node_id, "artifact")), retry))


def node_file(retry: ClientRetryPolicy, run_id: str, node_id: str, digest: str) -> Program[bytes]:
    """A file of a node's artifact."""
    request = get(path("runs", run_id, "nodes", node_id, "files", digest), extra_timeout_sec=_TRANSFER_SEC)
    return (yield from fetch_bytes(request, retry))


def file_upload(retry: ClientRetryPolicy, content: bytes) -> Program[FileCreated]:
    """Upload a file for a run; start a run with its digest as a parameter within a day."""
    request = HttpRequest("POST", path("files"), content=content, is_repeatable=True, extra_timeout_sec=_TRANSFER_SEC)
    return (yield from fetch(FileCreated, request, retry))


def node(retry: ClientRetryPolicy, run_id: str, node_id: str) -> Program[NodeRead]:
    """One node of a run."""
    return (yield from fetch(NodeRead, get(path("runs", run_id, "nodes", node_id)), retry))


def run_watch(retry: ClientRetryPolicy, run_id: str) -> Flow[ChainRunRead | NodeRead]:
    """The state of a run and its nodes, then all changes until it finishes."""
    yield from _watch_until(retry, run_id)


def run_wait(retry: ClientRetryPolicy, run_id: str, *, timeout_sec: float | None = None) -> Program[ChainRunRead]:
    """Wait until a run has finished; raises ``WaitTimeoutError`` after ``timeout_sec``."""
    until_sec = math.inf if timeout_sec is None else retry.clock() + timeout_sec
    watching = _watch_until(retry, run_id, until_sec)
    return (yield from wait_until_finished(retry, watching, partial(run, retry, run_id), until_sec, "Run"))


def _watch_until(retry: ClientRetryPolicy, run_id: str, until_sec: float = math.inf) -> Flow[ChainRunRead | NodeRead]:
    last = yield from run(retry, run_id)

    def convert(sent: ServerSentEvent) -> ChainRunRead | NodeRead:
        nonlocal last
        if sent.name == "node":
            return decode(NodeRead, sent.data)
        if sent.name == "run":
            last = decode(ChainRunRead, sent.data)
        return last

    yield from events(retry, path("runs", run_id, "events"), convert, until_sec=until_sec)


def run_stop(retry: ClientRetryPolicy, run_id: str, *, reason: str = "") -> Program[ChainRunRead]:
    """Stop a run."""
    yield from send(post(path("runs", run_id, action="stop"), {"reason": reason}), retry)
    return (yield from run(retry, run_id))


def run_rerun(
    retry: ClientRetryPolicy, run_id: str, *, from_node: str | None = None, reason: str = "", key: str | None = None
) -> Program[ChainRunStarted]:
    """Rerun a run from the start or from a node."""
    body = {"from_node": from_node, "reason": reason}
    return (yield from fetch(ChainRunStarted, post_idempotent(path("runs", run_id, action="rerun"), body, key), retry))


def node_retry(retry: ClientRetryPolicy, run_id: str, node_id: str, *, reason: str = "") -> Program[NodeRead]:
    """Retry a failed or stopped node."""
    request = post(path("runs", run_id, "nodes", node_id, action="retry"), {"reason": reason})
    return (yield from fetch(NodeRead, request, retry))


def node_complete(
    retry: ClientRetryPolicy, run_id: str, node_id: str, *, artifact: Any = None, reason: str = ""
) -> Program[NodeRead]:
    """Mark a node as success."""
    body = {"artifact": artifact, "reason": reason}
    return (yield from fetch(NodeRead, post(path("runs", run_id, "nodes", node_id, action="complete"), body), retry))


def node_approve(retry: ClientRetryPolicy, run_id: str, node_id: str, *, reason: str) -> Program[NodeRead]:
    """Approve a node that waits for approval."""
    request = post(path("runs", run_id, "nodes", node_id, action="approve"), {"reason": reason})
    return (yield from fetch(NodeRead, request, retry))


def node_reject(retry: ClientRetryPolicy, run_id: str, node_id: str, *, reason: str) -> Program[NodeRead]:
    """Reject a node that waits for approval."""
    request = post(path("runs", run_id, "nodes", node_id, action="reject"), {"reason": reason})
    return (yield from fetch(NodeRead, request, retry))
