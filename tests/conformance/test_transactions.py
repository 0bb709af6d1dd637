"""What every driver promises about transactions, held on SQLite and PostgreSQL alike."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from adjudge.domain.errors import (
    AdjudgeError,
    Conflict,
    InternalFault,
    InvalidInput,
    InvalidTransition,
    Unavailable,
)
from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.accounts.users import NewUser
from adjudge.store.engine import constraints
from adjudge.store.engine.statement import Dialect, Statement
from tests.support.store_harness import StoreHarness, adhoc_statement

COUNT = adhoc_statement("SELECT count(*) AS n FROM users")
NAMES = adhoc_statement("SELECT name FROM users ORDER BY name")


async def add(tx: Tx, name: str, **fields: Any) -> None:
    await users.insert(tx, NewUser(new_id(), name, **fields))


async def names(store: StoreHarness) -> list[str]:
    return [row["name"] for row in await store.database.read(lambda tx: tx.fetch(NAMES))]


async def test_a_transaction_returns_what_its_operation_returned_and_commits(store: StoreHarness) -> None:
    async def operation(tx: Tx) -> int:
        await add(tx, "ada")
        return 7

    assert await store.transact(operation) == 7
    assert await names(store) == ["ada"]


async def test_an_operation_that_raises_leaves_nothing(store: StoreHarness) -> None:
    class Mine(Exception):
        pass

    async def operation(tx: Tx) -> None:
        await add(tx, "ada")
        raise Mine

    with pytest.raises(Mine):
        await store.transact(operation)
    assert await names(store) == []


async def test_callbacks_run_after_the_commit_and_only_then(store: StoreHarness) -> None:
    seen: list[str] = []

    async def commits(tx: Tx) -> None:
        tx.on_commit(lambda: seen.append("committed"))
        await add(tx, "ada")
        assert seen == []

    async def fails(tx: Tx) -> None:
        tx.on_commit(lambda: seen.append("never"))
        await add(tx, "ada")

    await store.transact(commits)
    assert seen == ["committed"]
    with pytest.raises(Conflict):
        await store.transact(fails)
    assert seen == ["committed"]


async def test_a_callback_that_fails_neither_undoes_the_commit_nor_stops_the_others(store: StoreHarness) -> None:
    seen: list[str] = []

    async def operation(tx: Tx) -> None:
        tx.on_commit(lambda: seen.append(str(1 / 0)))
        tx.on_commit(lambda: seen.append("second"))
        await add(tx, "ada")

    await asyncio.wait_for(store.transact(operation), 120)
    assert seen == ["second"]
    assert await names(store) == ["ada"]


async def test_a_swallowed_failure_still_dooms_the_transaction(store: StoreHarness) -> None:
    await store.transact(lambda tx: add(tx, "ada"))

    async def operation(tx: Tx) -> None:
        await add(tx, "bob")
        try:
            await add(tx, "ada")
        except Conflict:
            with pytest.raises(Conflict):
                await add(tx, "cleo")

    with pytest.raises(Conflict):
        await store.transact(operation)
    assert await names(store) == ["ada"]


async def test_a_failure_behind_the_first_row_dooms_the_transaction_too(store: StoreHarness) -> None:
    """SQLite hands rows out one by one: it has answered with one before it meets the next."""
    document = "CAST(v AS jsonb)" if store.dialect is Dialect.POSTGRES else "json(v)"
    faulty = adhoc_statement(f"SELECT {document} AS d FROM (SELECT '[]' AS v UNION ALL SELECT '[') AS texts")

    async def operation(tx: Tx) -> None:
        await add(tx, "ada")
        with suppress(AdjudgeError):
            await tx.fetch(faulty)

    with pytest.raises(AdjudgeError):
        await store.transact(operation)
    assert await names(store) == []


async def test_transaction_that_sqlite_ended_is_not_reported_as_committed(sqlite_store: StoreHarness) -> None:
    """Alone in its group it has no savepoint, whose loss would be noticed."""
    called: list[str] = []

    async def operation(tx: Tx) -> None:
        await add(tx, "ada")
        tx.on_commit(partial(called.append, "committed"))
        await tx.execute(adhoc_statement("ROLLBACK"))

    with pytest.raises(Unavailable, match="could not commit"):
        await sqlite_store.transact(operation)
    assert (await names(sqlite_store), called) == ([], [])
    await sqlite_store.transact(partial(add, name="bob"))
    assert await names(sqlite_store) == ["bob"]


async def test_what_ended_a_read_on_sqlite_is_what_its_caller_hears(sqlite_store: StoreHarness) -> None:
    async def operation(tx: Tx) -> None:
        await tx.execute(adhoc_statement("ROLLBACK"))  # as SQLite does itself where the disk fails
        raise Unavailable("The disk is away.")

    with pytest.raises(Unavailable, match="disk is away"):
        await sqlite_store.database.read(operation)
    assert await names(sqlite_store) == []


async def test_many_transactions_at_once_all_commit(store: StoreHarness) -> None:
    await asyncio.gather(*(store.transact(partial(add, name=f"user-{n:02}")) for n in range(40)))
    assert len(await names(store)) == 40


async def test_a_transaction_that_fails_takes_nothing_from_its_neighbours(store: StoreHarness) -> None:
    """On SQLite they commit as a group."""
    outcomes = await asyncio.gather(
        *(store.transact(partial(add, name="twin" if n % 3 == 0 else f"user-{n:02}")) for n in range(30)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 9
    assert len(await names(store)) == 21


async def test_a_transaction_sees_its_own_writes_and_others_see_them_only_after_the_commit(store: StoreHarness) -> None:
    during: list[int] = []

    async def operation(tx: Tx) -> None:
        await add(tx, "ada")
        during.append((await tx.fetch(COUNT))[0]["n"])

    before = await names(store)
    await store.transact(operation)
    assert (before, during, await names(store)) == ([], [1], ["ada"])


async def test_a_read_sees_one_snapshot(postgres_store: StoreHarness) -> None:
    written = asyncio.Event()
    begun = asyncio.Event()

    async def look(tx: Tx) -> tuple[int, int]:
        first = (await tx.fetch(COUNT))[0]["n"]
        begun.set()
        await written.wait()
        return first, (await tx.fetch(COUNT))[0]["n"]

    reading = asyncio.create_task(postgres_store.database.read(look))
    await begun.wait()
    await postgres_store.transact(lambda tx: add(tx, "ada"))
    written.set()
    assert await reading == (0, 0)


async def test_a_read_on_sqlite_sees_one_snapshot(sqlite_store: StoreHarness) -> None:
    """The reader holds its thread, so the writer is driven from another loop's thread meanwhile."""
    loop = asyncio.get_running_loop()

    async def look(tx: Tx) -> tuple[int, int]:
        first = (await tx.fetch(COUNT))[0]["n"]
        asyncio.run_coroutine_threadsafe(sqlite_store.transact(lambda inner: add(inner, "ada")), loop).result(10)
        return first, (await tx.fetch(COUNT))[0]["n"]

    assert await sqlite_store.database.read(look) == (0, 0)
    assert await names(sqlite_store) == ["ada"]


async def test_a_read_cannot_write(store: StoreHarness) -> None:
    with pytest.raises(InternalFault):
        await store.database.read(lambda tx: add(tx, "ada"))
    assert await names(store) == []
    await store.transact(lambda tx: add(tx, "ada"))


async def test_an_operation_that_awaits_something_foreign_is_refused_on_sqlite(sqlite_store: StoreHarness) -> None:
    async def operation(tx: Tx) -> None:
        await add(tx, "ada")
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="awaited something other"):
        await sqlite_store.transact(operation)
    assert await names(sqlite_store) == []


async def test_a_transaction_canceled_while_it_waits_never_runs(store: StoreHarness) -> None:
    started: list[str] = []

    async def operation(tx: Tx) -> None:
        started.append("ran")
        await add(tx, "late")

    waiting = asyncio.create_task(store.transact(operation))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await store.transact(lambda tx: add(tx, "next"))
    assert (started, await names(store)) == ([], ["next"])


async def test_a_closed_database_is_unavailable(store: StoreHarness) -> None:
    await store.database.close()
    with pytest.raises(Unavailable):
        await store.transact(lambda tx: add(tx, "ada"))
    with pytest.raises(Unavailable):
        await names(store)
    await store.database.close()


@pytest.mark.parametrize("constraint", sorted(constraints.TAKEN))
async def test_every_unique_constraint_that_people_meet_is_a_conflict_that_names_the_field(
    store: StoreHarness, constraint: str
) -> None:
    statements = DUPLICATES[constraint]

    async def operation(tx: Tx) -> None:
        for sql in ("INSERT INTO users (id, name, created_at, updated_at) VALUES ('u', 'u', 0, 0)", *statements):
            await tx.execute(adhoc_statement(sql))

    with pytest.raises(Conflict) as refused:
        await store.transact(operation)
    assert refused.value.fields["field"] == constraints.TAKEN[constraint][0]


_USER = "INSERT INTO users (id, name, email, created_at, updated_at) VALUES"
_TOKEN = "INSERT INTO api_tokens (id, user_id, name, token_hash, scopes, created_at) VALUES"
_PROBLEM = "INSERT INTO problems (id, slug, title, owner_id, tags, created_at, updated_at) VALUES"
_REVISION = (
    "INSERT INTO problem_revisions "
    "(id, problem_id, number, format, manifest_digest, definition, created_by, created_at) VALUES"
)
_CONTEST = "INSERT INTO contests (id, slug, title, starts_at, duration_us, created_at, updated_at) VALUES"
_RUN = "INSERT INTO chain_runs (id, chain_id, number, chain_version, dag, created_at, updated_at) VALUES"
_CHAIN = "INSERT INTO chains (id, name, dag, created_at, updated_at) VALUES"
_IDENTITY = "INSERT INTO identities (issuer, subject, user_id, created_at) VALUES"
_TRIGGER = "INSERT INTO chain_triggers (id, chain_id, name, kind, spec, created_at, updated_at) VALUES"
_ONE_CONTEST = f"{_CONTEST} ('c', 'c', 't', 0, 1, 0, 0)"
_TWO_PROBLEMS = [
    _ONE_CONTEST,
    f"{_PROBLEM} ('p', 'p', 't', 'u', '[]', 0, 0), ('q', 'q', 't', 'u', '[]', 0, 0)",
    f"{_REVISION} ('r', 'p', 1, 'f', 'd', '{{}}', 'u', 0)",
]
_LISTED = "INSERT INTO contest_problems (contest_id, problem_id, revision_id, label, ordinal) VALUES"
_TEAM = "INSERT INTO teams (id, code, name, created_at, updated_at) VALUES"
_PARTICIPANT = "INSERT INTO participants (id, contest_id, code, name, team_id, user_id, created_at, updated_at) VALUES"
_MEMBER_TWICE = [
    _ONE_CONTEST,
    f"{_PARTICIPANT} ('a', 'c', 'o', 'n', NULL, 'u', 0, 0)",
    "INSERT INTO participant_members (contest_id, user_id, participant_id) VALUES ('c', 'u', 'a'), ('c', 'u', 'a')",
]
DUPLICATES = {
    "users_name_key": [f"{_USER} ('a', 'x', NULL, 0, 0)", f"{_USER} ('b', 'x', NULL, 0, 0)"],
    "users_email_key": [f"{_USER} ('a', 'x', 'e', 0, 0)", f"{_USER} ('b', 'y', 'e', 0, 0)"],
    "api_tokens_token_hash_key": [f"{_TOKEN} ('a', 'u', 'x', 'h', '[]', 0), ('b', 'u', 'y', 'h', '[]', 0)"],
    "problems_slug_key": [f"{_PROBLEM} ('a', 's', 't', 'u', '[]', 0, 0), ('b', 's', 't', 'u', '[]', 0, 0)"],
    "problem_revisions_problem_id_number_key": [
        f"{_PROBLEM} ('p', 's', 't', 'u', '[]', 0, 0)",
        f"{_REVISION} ('a', 'p', 1, 'f', 'd', '{{}}', 'u', 0), ('b', 'p', 1, 'f', 'd', '{{}}', 'u', 0)",
    ],
    "contests_slug_key": [f"{_CONTEST} ('a', 's', 't', 0, 1, 0, 0), ('b', 's', 't', 0, 1, 0, 0)"],
    "contests_contest_only_key": [
        (
            "INSERT INTO contests (id, slug, title, contest_only, duration_us, created_at, updated_at) VALUES"
            " ('a', 's', 't', true, 1, 0, 0), ('b', 'r', 't', true, 1, 0, 0)"
        )
    ],
    "contest_problems_contest_id_label_key": [
        *_TWO_PROBLEMS,
        f"{_LISTED} ('c', 'p', 'r', 'A', 1), ('c', 'q', 'r', 'A', 2)",
    ],
    "contest_problems_contest_id_ordinal_key": [
        *_TWO_PROBLEMS,
        f"{_LISTED} ('c', 'p', 'r', 'A', 1), ('c', 'q', 'r', 'B', 1)",
    ],
    "removed_intervals_contest_id_key": [
        _ONE_CONTEST,
        "INSERT INTO removed_intervals (id, contest_id, from_at, created_at) VALUES ('a', 'c', 1, 0), ('b', 'c', 2, 0)",
    ],
    "organizations_code_key": [
        (
            "INSERT INTO organizations (id, code, name, created_at, updated_at) VALUES"
            " ('a', 'o', 'n', 0, 0), ('b', 'o', 'n', 0, 0)"
        )
    ],
    "teams_code_key": [f"{_TEAM} ('a', 'o', 'n', 0, 0), ('b', 'o', 'n', 0, 0)"],
    "contest_groups_contest_id_code_key": [
        _ONE_CONTEST,
        "INSERT INTO contest_groups (id, contest_id, code, name) VALUES ('a', 'c', 'o', 'n'), ('b', 'c', 'o', 'n')",
    ],
    "participants_contest_id_code_key": [
        _ONE_CONTEST,
        f"{_TEAM} ('t', 't', 'n', 0, 0)",
        f"{_PARTICIPANT} ('a', 'c', 'o', 'n', 't', NULL, 0, 0), ('b', 'c', 'o', 'n', NULL, 'u', 0, 0)",
    ],
    "participants_contest_id_team_id_run_no_key": [
        _ONE_CONTEST,
        f"{_TEAM} ('t', 't', 'n', 0, 0)",
        f"{_PARTICIPANT} ('a', 'c', 'o', 'n', 't', NULL, 0, 0), ('b', 'c', 'p', 'n', 't', NULL, 0, 0)",
    ],
    "participants_contest_id_user_id_run_no_key": [
        _ONE_CONTEST,
        f"{_PARTICIPANT} ('a', 'c', 'o', 'n', NULL, 'u', 0, 0), ('b', 'c', 'p', 'n', NULL, 'u', 0, 0)",
    ],
    "participant_members_pkey": _MEMBER_TWICE,
    "participant_members_contest_id_user_id_run_no_key": _MEMBER_TWICE,  # as SQLite calls it
    "canned_answers_contest_id_title_key": [
        _ONE_CONTEST,
        "INSERT INTO canned_answers (id, contest_id, title, body) VALUES ('a', 'c', 't', 'b'), ('b', 'c', 't', 'b')",
    ],
    "contest_invitations_code_hash_key": [
        _ONE_CONTEST,
        (
            "INSERT INTO contest_invitations (id, contest_id, code_hash, created_at) VALUES"
            " ('a', 'c', 'h', 0), ('b', 'c', 'h', 0)"
        ),
    ],
    "identities_pkey": [f"{_IDENTITY} ('i', 's', 'u', 0), ('i', 's', 'u', 0)"],
    "identities_issuer_subject_key": [f"{_IDENTITY} ('i', 's', 'u', 0), ('i', 's', 'u', 0)"],  # as SQLite calls it
    "chain_triggers_chain_id_name_key": [
        f"{_CHAIN} ('c', 'n', '{{}}', 0, 0)",
        f"{_TRIGGER} ('a', 'c', 'n', 'cron', '{{}}', 0, 0), ('b', 'c', 'n', 'cron', '{{}}', 0, 0)",
    ],
    "chains_name_key": [f"{_CHAIN} ('a', 'n', '{{}}', 0, 0), ('b', 'n', '{{}}', 0, 0)"],
}


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        pytest.param(f"{_TOKEN} ('a', 'nobody', 'x', 'h', '[]', 0)", InvalidInput, id="foreign key"),
        pytest.param(f"{_CONTEST} ('a', 's', 't', 9, 0, 0, 0)", InternalFault, id="check"),
        pytest.param(f"{_USER} ('a', NULL, NULL, 0, 0)", InternalFault, id="not null"),
        pytest.param("SELECT * FROM nowhere", InternalFault, id="unknown table"),
    ],
)
async def test_what_the_database_refuses_has_a_meaning(
    store: StoreHarness, sql: str, error: type[AdjudgeError]
) -> None:
    with pytest.raises(error):
        await store.transact(lambda tx: tx.fetch(adhoc_statement(sql)))


@pytest.mark.parametrize("guard", sorted(constraints.ILLEGAL))
async def test_every_guard_is_an_invalid_transition(store: StoreHarness, guard: str) -> None:
    node = "INSERT INTO chain_nodes (run_id, node_id, type, updated_at) VALUES ('r', 'n', 't', 0)"
    run = (
        f"{_CHAIN} ('c', 'n', '{{}}', 0, 0)",
        f"{_RUN} ('r', 'c', 1, 1, '{{}}', 0, 0)",
        node,
    )
    illegal = {
        "jobs_legal_edge": "UPDATE jobs SET status = 'succeeded', finished_at = 1",
        "jobs_terminal_is_final": "UPDATE jobs SET reason = 'rewritten'",
        "submissions_legal_edge": "UPDATE submissions SET reason = 'rewritten'",
        "chain_runs_legal_edge": "UPDATE chain_runs SET status = 'success', finished_at = 1",
        "chain_nodes_legal_edge": "UPDATE chain_nodes SET status = 'success'",
        "contests_legal_edge": "UPDATE contests SET state = 'finalized', finalized_at = 1",
        "contests_end_of_updates": "INSERT INTO awards (contest_id, code, citation, updated_at)"
        " VALUES ('closed', 'a', 'b', 0)",
    }
    await store.submit()
    await store.write(_ONE_CONTEST)
    await store.write(
        "INSERT INTO contests (id, slug, title, state, starts_at, duration_us, finalized_at, end_of_updates_at,"
        " created_at, updated_at) VALUES ('closed', 'x', 't', 'finalized', 0, 1, 2, 3, 0, 0)"
    )
    for sql in run:
        await store.write(sql)
    if guard == "jobs_terminal_is_final":
        await store.write("UPDATE jobs SET status = 'canceled', finished_at = 1")
    with pytest.raises(InvalidTransition):
        await store.write(illegal[guard])


async def test_values_that_no_database_holds_are_the_callers_to_fix(store: StoreHarness) -> None:
    statement = Statement(
        "test.echo", "Echo.", "SELECT given_text AS t FROM {given}", input_columns={"given_text": "text"}
    )

    async def echo(tx: Tx, text: str) -> None:
        await tx.fetch(statement, [(text,)])

    for text in ("half a pair: \ud800", "a zero\0byte"):
        with pytest.raises(InvalidInput):
            await store.transact(partial(echo, text=text))
        with pytest.raises(InvalidInput):
            await store.transact(partial(add, name=text))


async def test_postgres_plans_writes_once_and_searches_for_their_values(postgres_store: StoreHarness) -> None:
    """Our longest statements take as long to plan as to run; a search cannot be planned without its filters."""
    mode = adhoc_statement("SELECT current_setting('plan_cache_mode') AS mode")
    search = Statement("test.search", "Search.", "SELECT 1 AS one", force_custom_plan=True)

    async def plans(tx: Tx) -> str:
        return str((await tx.fetch(mode))[0]["mode"])

    async def search_first(tx: Tx) -> str:
        await tx.fetch(search)
        return await plans(tx)

    assert await postgres_store.database.transact(plans) == "force_generic_plan"
    assert await postgres_store.database.read(plans) == "auto"
    assert await postgres_store.database.transact(search_first) == "auto"
    assert await postgres_store.database.transact(plans) == "force_generic_plan"
