"""Operations: rejudge batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge.client.models import Page
from adjudge.client.requests import fetch, fetch_page, get, path, post, query
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Program
from adjudge.schema.rejudge import RejudgeApplyRead, RejudgeBatchRead, RejudgePreviewRead


def rejudge(
    retry: ClientRetryPolicy,
    wanted: Mapping[str, Any],
    *,
    reason: str,
    policy: str = "latest",
    revision: str = "current",
) -> Program[RejudgeBatchRead]:
    """Create a rejudge batch; ``wanted`` is the filter of the API."""
    body = {"filter": dict(wanted), "reason": reason, "policy": policy, "revision": revision}
    return (yield from fetch(RejudgeBatchRead, post(path("rejudge-batches"), body), retry))


def rejudge_batches(
    retry: ClientRetryPolicy, *, cursor: str | None = None, limit: int = 20
) -> Program[Page[RejudgeBatchRead]]:
    """A page of batches, newest first."""
    wanted = query(cursor=cursor, limit=limit)
    return (yield from fetch_page(RejudgeBatchRead, get(path("rejudge-batches"), wanted), retry))


def rejudge_batch(retry: ClientRetryPolicy, batch_id: str) -> Program[RejudgeBatchRead]:
    """A batch, by ID or number, and its progress."""
    return (yield from fetch(RejudgeBatchRead, get(path("rejudge-batches", batch_id)), retry))


def rejudge_preview(
    retry: ClientRetryPolicy,
    batch_id: str,
    *,
    only_different: bool = True,
    cursor: str | None = None,
    limit: int = 20,
) -> Program[RejudgePreviewRead]:
    """The verdict changes that applying a batch would make."""
    wanted = query(only_different=only_different, cursor=cursor, limit=limit)
    return (yield from fetch(RejudgePreviewRead, get(path("rejudge-batches", batch_id, "preview"), wanted), retry))


def rejudge_apply(retry: ClientRetryPolicy, batch_id: str, *, skip_changed: bool = False) -> Program[RejudgeApplyRead]:
    """Apply the new verdicts."""
    request = post(path("rejudge-batches", batch_id, action="apply"), {"skip_changed": skip_changed})
    return (yield from fetch(RejudgeApplyRead, request, retry))


def rejudge_discard(retry: ClientRetryPolicy, batch_id: str, *, reason: str = "") -> Program[RejudgeBatchRead]:
    """Discard a batch. Verdicts stay unchanged."""
    request = post(path("rejudge-batches", batch_id, action="discard"), {"reason": reason})
    return (yield from fetch(RejudgeBatchRead, request, retry))


def rejudge_cancel(retry: ClientRetryPolicy, batch_id: str, *, reason: str = "") -> Program[RejudgeBatchRead]:
    """Cancel a running batch."""
    request = post(path("rejudge-batches", batch_id, action="cancel"), {"reason": reason})
    return (yield from fetch(RejudgeBatchRead, request, retry))
