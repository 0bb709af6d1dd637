"""What executors of chain nodes read and change: who acts, what a submission came to, contests that close."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.domain.authority import Grant, Standing
from adjudge.domain.errors import NotFound
from adjudge.domain.permissions import Role
from adjudge.store.chains.queries import json_from_column as from_json
from adjudge.store.engine.driver import Database, Tx, fetch_one
from adjudge.store.engine.statement import Row, Statement

_PAGE: Final = 1_000

FIND_ID = Statement(
    "users.find_id",
    "Find a user's id by name or id.",
    "SELECT id FROM users WHERE id = :who OR name = :who ORDER BY id = :who DESC LIMIT 1",
)

FIND_ROLE = Statement(
    "users.find_role",
    "Find which of the given users and tokens may still act; a password that must be changed stops sessions only.",
    """
    SELECT users.id AS user_id, given_token_id AS token_id, users.role AS role, api_tokens.scopes AS scopes
    FROM {given} JOIN users ON users.id = given_user_id AND users.disabled_at IS NULL
    LEFT JOIN api_tokens ON api_tokens.id = given_token_id AND api_tokens.user_id = users.id
         AND api_tokens.revoked_at IS NULL AND (api_tokens.expires_at IS NULL OR api_tokens.expires_at > {now})
    WHERE CASE WHEN given_token_id IS NULL THEN NOT must_change_password ELSE api_tokens.id IS NOT NULL END
    """,
    input_columns={"given_user_id": "text", "given_token_id": "text"},
)

_OUTCOME = "SELECT id, status, verdict, score, time_ms, mem_kb FROM submissions WHERE id = :submission_id"
LOCK_STATE = Statement(
    "submissions.lock_state",
    "Read a submission's state under a share lock.",
    _OUTCOME + " FOR SHARE",
    sqlite_sql=_OUTCOME,
)

_BATCH_STATE = "SELECT state FROM rejudge_batches WHERE id = :batch_id"
LOCK_BATCH_STATE = Statement(
    "rejudge.lock_batch_state",
    "Read a rejudge batch's state under a share lock.",
    _BATCH_STATE + " FOR SHARE",
    sqlite_sql=_BATCH_STATE,
)

AWAITED = Statement(
    "chain_waits.awaited",
    "Find out which of the things that have just ended a node waits for, in the order in which runs are locked.",
    """
    SELECT wait_on, wait_key FROM {given} JOIN chain_nodes ON wait_on = given_on AND wait_key = given_key
    WHERE wait_on IS NOT NULL GROUP BY wait_on, wait_key ORDER BY max(run_id) DESC, wait_on, wait_key
    """,
    input_columns={"given_on": "text", "given_key": "text"},
)

LIST_PUBLISHED = Statement(
    "problems.list_published",
    "List published problems by slug.",
    """
    SELECT id, slug, title, published_revision_id FROM problems
    WHERE published_revision_id IS NOT NULL AND slug > :after ORDER BY slug LIMIT :limit
    """,
)

FIND = Statement(
    "contests.find",
    "Find a contest by slug or id.",
    """
    SELECT id, slug, title, starts_at, freezes_at, ends_at, ends_at <= {now} AS has_ended FROM contests
    WHERE id = :name OR slug = :name
    """,
)

UNFREEZE = Statement(
    "contests.unfreeze",
    "Unfreeze an ended contest.",
    """
    UPDATE contests SET freezes_at = NULL, version = version + 1, updated_at = {now}
    WHERE id = :contest_id AND ends_at <= {now} AND freezes_at IS NOT NULL
    """,
)

PAGE_SUBMISSIONS = Statement(
    "contests.page_submissions",
    "List the submissions of a contest by id, keyset-paginated.",
    """
    SELECT submissions.id AS id, users.name AS user_name, contest_problems.label AS label, problems.slug AS problem,
           language, status, verdict, score, time_ms, mem_kb, submissions.created_at AS created_at
    FROM submissions JOIN users ON users.id = submissions.user_id
    JOIN problems ON problems.id = submissions.problem_id
    LEFT JOIN contest_problems ON contest_problems.contest_id = submissions.contest_id
          AND contest_problems.problem_id = submissions.problem_id
    WHERE submissions.contest_id = :contest_id AND submissions.id > :after
    ORDER BY submissions.id LIMIT :limit
    """,
)


@dataclass(frozen=True, slots=True)
class SubmissionState:
    """Where a submission stands."""

    id: str
    status: str
    verdict: str | None
    score: float | None
    time_ms: int | None
    mem_kb: int | None


@dataclass(frozen=True, slots=True)
class PublishedProblem:
    """A problem that can be submitted to."""

    id: str
    slug: str
    title: str
    revision_id: str


@dataclass(frozen=True, slots=True)
class ContestRow:
    """A contest's times, in microseconds."""

    id: str
    slug: str
    title: str
    starts_at: int
    freezes_at: int | None
    ends_at: int
    has_ended: bool


async def find_id(tx: Tx, who: str) -> str | None:
    """The id of the user that a name or an id speaks of."""
    row = await fetch_one(tx, FIND_ID, who=who)
    return str(row["id"]) if row else None


async def find_role(tx: Tx, grants: Sequence[Grant]) -> list[Standing]:
    """Those of the grants that hold now: the user is not disabled, the token was not revoked and has not expired."""
    rows = await tx.fetch(FIND_ROLE, [(grant.user_id, grant.token_id) for grant in grants])
    return [
        Standing(Grant(row["user_id"]), Role(row["role"]))
        if row["token_id"] is None
        else Standing(Grant(row["user_id"], row["token_id"]), Role(row["role"]), frozenset(from_json(row["scopes"])))
        for row in rows
    ]


async def lock_submission_state(tx: Tx, submission_id: str) -> SubmissionState | None:
    """Where a submission stands; nobody can change it before this transaction ends."""
    row = await fetch_one(tx, LOCK_STATE, submission_id=submission_id)
    return SubmissionState(*row) if row else None


async def lock_batch_state(tx: Tx, batch_id: str) -> str | None:
    """Where a rejudge batch stands; nobody can change it before this transaction ends."""
    row = await fetch_one(tx, LOCK_BATCH_STATE, batch_id=batch_id)
    return str(row["state"]) if row else None


async def find_awaited(tx: Tx, things: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of the things, each a kind and a key, that a node waits for."""
    rows = await tx.fetch(AWAITED, sorted(things)) if things else []
    return [(row["wait_on"], row["wait_key"]) for row in rows]


async def list_published(tx: Tx, *, limit: int = 10_000) -> list[PublishedProblem]:
    """Published problems by slug."""
    return [PublishedProblem(*row) for row in await tx.fetch(LIST_PUBLISHED, after="", limit=limit)]


async def find_contest(tx: Tx, name: str) -> ContestRow:
    """Find a contest by its slug or its id."""
    row = await fetch_one(tx, FIND, name=name)
    if row is None:
        raise NotFound("contest", name)
    return ContestRow(
        row["id"],
        row["slug"],
        row["title"],
        row["starts_at"],
        row["freezes_at"],
        row["ends_at"],
        bool(row["has_ended"]),
    )


async def unfreeze(tx: Tx, contest_id: str) -> bool:
    """Lift the freeze of a contest that has ended; False where it has none."""
    return bool(await tx.execute(UNFREEZE, contest_id=contest_id))


async def iter_contest_submissions(database: Database, contest_id: str) -> AsyncIterator[list[Row]]:
    """The submissions of a contest, a page at a time: a large contest holds no long transaction."""
    page = await _results(database, contest_id, "")
    while page:
        yield page
        page = await _results(database, contest_id, page[-1]["id"]) if len(page) == _PAGE else []


async def _results(database: Database, contest_id: str, after: str) -> list[Row]:
    return await database.read(lambda tx: tx.fetch(PAGE_SUBMISSIONS, contest_id=contest_id, after=after, limit=_PAGE))
