"""Runs as somebody may know of them: those they started, and those in which they are asked something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjudge.domain.states import ChainRunStatus
from adjudge.store.chains.models import ChainRunRow
from adjudge.store.chains.queries import LAST, RUN, run_from_row
from adjudge.store.engine.driver import Tx
from adjudge.store.engine.statement import Row, Statement, json_from_column

_PAGE_OF = """
      AND (CAST(:chain_id AS text) = '' OR chain_id = :chain_id) AND (CAST(:status AS text) = '' OR status = :status)
      AND chain_runs.id < :before
    ORDER BY chain_runs.id DESC LIMIT :limit
    """

PAGE_STARTED_BY = Statement(
    "chain_runs.page_started_by",
    "List runs started by a user, newest first, optionally by chain and status.",
    f"SELECT {RUN} FROM chain_runs JOIN chains ON chains.id = chain_id WHERE started_by = :started_by {_PAGE_OF}",
)

PAGE_BY_IDS = Statement(
    "chain_runs.page_by_ids",
    "List the given runs, newest first, optionally by chain and status.",
    f"""
    SELECT {RUN} FROM {{given}} JOIN chain_runs ON chain_runs.id = given_id JOIN chains ON chains.id = chain_id
    WHERE true {_PAGE_OF}
    """,
    input_columns={"given_id": "text"},
)

APPROVALS_FOR = Statement(
    "chain_nodes.approvals_for",
    "Find open approvals addressed to given users.",
    """
    SELECT run_id, artifact FROM chain_nodes
    WHERE wait_on IS NOT NULL AND wait_on = 'approval' ORDER BY run_id DESC LIMIT :limit
    """,
)

APPROVALS_OF_RUN = Statement(
    "chain_nodes.approvals_of_run",
    "Read the approvals of a run with their answers.",
    "SELECT artifact FROM chain_nodes WHERE run_id = :run_id AND type = 'wait_approval'",
)

_QUESTIONS = 1_000
"""How many open questions are looked through for those that ask somebody."""


async def page_runs_of_user(
    tx: Tx,
    names: Sequence[str],
    *,
    chain_id: str = "",
    status: ChainRunStatus | None = None,
    before: str = "",
    limit: int = 50,
) -> list[ChainRunRow]:
    """List runs of somebody, the newest first: those they started, and those that ask them something now.

    The first of their names is the one that runs are started by.
    """
    narrow = {"chain_id": chain_id, "status": str(status or ""), "before": before or LAST, "limit": limit}
    rows = await tx.fetch(PAGE_STARTED_BY, started_by=names[0], **narrow)
    asking = {row["run_id"] for row in await tx.fetch(APPROVALS_FOR, limit=_QUESTIONS) if _is_asked(row, names)}
    if asking:
        rows += await tx.fetch(PAGE_BY_IDS, sorted((run_id,) for run_id in asking), **narrow)
    found = {run.id: run for run in map(run_from_row, rows)}
    return [found[run_id] for run_id in sorted(found, reverse=True)[:limit]]


async def has_question_for(tx: Tx, run_id: str, names: Sequence[str]) -> bool:
    """Whether a node of a run asks somebody, by any of their names, or was answered by them."""
    return any(_is_asked(row, names) for row in await tx.fetch(APPROVALS_OF_RUN, run_id=run_id))


def _is_asked(row: Row, names: Sequence[str]) -> bool:
    """Whether a node names somebody; one that was completed by hand may have left anything at all."""
    asked = json_from_column(row["artifact"])
    if not isinstance(asked, Mapping):
        return False
    approvers = asked.get("approvers")
    named = approvers if isinstance(approvers, list) else []
    return any(name in (asked.get("by"), *named) for name in names)
