"""Blobs whose digest occurs in a DAG, parameters, a checkpoint or an artifact are not deleted by ``adjudge gc``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.chains.artifacts import iter_nested_digests, store_artifact
from adjudge.store.chains import commands as chain_commands
from adjudge.store.chains.models import NodeDone
from adjudge.store.ops import blob_references
from adjudge.store.ops.blob_references import iter_referenced_digests
from tests.integration.chains.harness import ChainHarness, dag, done, node
from tests.support.store_harness import StoreHarness, fence_of


def _digest(letter: str) -> str:
    return letter * 64


async def test_digests_in_documents_of_chains_are_referenced(store: StoreHarness) -> None:
    harness = ChainHarness(store)
    document = dag(node("a", cfg={"files": [{"blob": _digest("a")}]}), node("b", "a"))
    run_id = await harness.start(document, {"package": _digest("b"), "deep": [{"er": f"s3://x/{_digest('c')}.zip"}]})
    job = (await harness.claim("a"))["a"]
    await store.transact(
        lambda tx: chain_commands.save_checkpoint(tx, fence_of(job), attempt=1, document={"at": _digest("d")})
    )
    await harness.finish(job, outcome=done(f'{{"outputs": [{{"digest": "{_digest("e")}"}}], "other": "{"f" * 65}"}}'))
    assert (await harness.states(run_id))["a"] == "success"
    referenced = [digest async for digest in iter_referenced_digests(store.database)]
    assert {_digest(letter) for letter in "abcde"} <= set(referenced)
    assert not [digest for digest in referenced if "f" in digest], "65 digits are not a digest"


async def test_documents_of_several_pages_are_all_read(store: StoreHarness) -> None:
    harness = ChainHarness(store)
    run_id = await harness.start(
        dag(*(node(f"n{number:03}") for number in range(2 * blob_references.DOCUMENTS_PAGE + 1)))
    )
    jobs = (await harness.claim()).values()
    artifacts: dict[str, Any] = {job.node_id or "": done(f'"{int((job.node_id or "")[1:]):064x}"') for job in jobs}
    await harness.finish(*jobs, **artifacts)
    referenced = {digest async for digest in iter_referenced_digests(store.database)}
    assert {f"{number:064x}" for number in range(2 * blob_references.DOCUMENTS_PAGE + 1)} <= referenced, run_id


async def test_digests_in_artifacts_stored_as_blobs_are_referenced_and_missing_blobs_are_skipped(
    store: StoreHarness, tmp_path: Path
) -> None:
    harness, blobs = ChainHarness(store), DirectoryBlobStore(tmp_path / "blobs")
    await harness.start(dag(node("a"), node("b")))
    jobs = await harness.claim()
    large = await store_artifact({"padding": "x" * 300_000, "digest": _digest("a")}, blobs)
    lost = await store_artifact({"padding": "y" * 300_000, "digest": _digest("b")}, blobs)
    await harness.finish(*jobs.values(), a=NodeDone(large), b=NodeDone(lost))
    await blobs.delete(lost.digest or "", stored_before_us=2**62)
    assert [digest async for digest in iter_nested_digests(store.database, blobs)] == [_digest("a")]
