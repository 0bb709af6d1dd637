"""What rows name is not garbage."""

from __future__ import annotations

from sqlalchemy import JSON

from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.judging.models import NewSubmission
from adjudge.store.ops import blob_references
from adjudge.store.ops.blob_references import iter_referenced_digests
from adjudge.store.problems import commands as problem_commands
from adjudge.store.problems import models as problem_models
from adjudge.store.problems.models import ManifestFile
from adjudge.store.schema import METADATA
from tests.support.store_harness import StoreHarness

NOT_BLOBS = {
    "evaluation_items.digest": "says whether two records are the same",
    "idempotency_keys.request_digest": "says whether two requests are the same",
    "source_texts.digest": "the text lies beside it, in the row",
}

COVERED = {
    "chains.authority": "ids of users and tokens",
    "chain_triggers.authority": "ids of users and tokens",
    "chain_runs.authority": "ids of users and tokens",
    "chains.dag": "the newest of chain_versions",
    "chain_runs.dag": "that of its version",
    "chain_trigger_ticks.payload": "becomes a run's parameters long before anything is collected",
}


def test_every_column_that_names_a_blob_is_asked() -> None:
    named = {
        f"{table.name}.{column.name}"
        for table in METADATA.sorted_tables
        for column in table.columns
        if column.name == "digest" or column.name.endswith("_digest")
    }
    assert named - NOT_BLOBS.keys() == blob_references.STATEMENTS.keys()


def test_every_document_that_people_and_programs_write_into_chains_is_searched() -> None:
    documents = {
        f"{table.name}.{column.name}"
        for table in METADATA.sorted_tables
        for column in table.columns
        if table.name.startswith("chain") and isinstance(column.type, JSON)
    }
    assert documents - COVERED.keys() == blob_references.DOCUMENTS.keys()


async def test_everything_that_is_named_is_live(store: StoreHarness) -> None:
    user, problem, revision = new_id(), new_id(), new_id()
    files = tuple(ManifestFile(f"{number}.in", f"{number:064d}", 1) for number in range(5))

    async def create(tx: Tx) -> None:
        await users.insert(tx, users.NewUser(user, "person"))
        await problem_commands.insert(tx, problem_models.NewProblem(problem, "sum", "Sum", user))
        await problem_commands.add_revision(
            tx, problem_models.NewRevision(revision, problem, "plain", "m" * 64, user, files=files)
        )
        new = [NewSubmission(new_id(), user, problem, revision, "cpp", digest * 64, 1) for digest in "ab"]
        await store.submissions.submit(tx, new)

    await store.transact(create)
    live = [digest async for digest in iter_referenced_digests(store.database)]
    assert {"a" * 64, "b" * 64, "m" * 64, *(file.digest for file in files)} <= set(live)
