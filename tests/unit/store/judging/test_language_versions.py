"""Which compiler versions decided the current verdicts, on both databases."""

from __future__ import annotations

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging import language_versions
from adjudge.store.judging.language_versions import iter_judged_with
from adjudge.store.judging.models import Judgement, SubmissionIds
from tests.support.store_harness import StoreHarness, fence_of


async def judge(store: StoreHarness, item: SubmissionIds, version: str | None) -> None:
    (job,) = (await store.claim(item.job_id)).done
    document = {"provenance": {"language_version": version}} if version is not None else {}
    finished = JobResult(fence_of(job), result=document, typed_result=Judgement(Verdict.AC))
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [finished]))


async def test_versions_of_judged_submissions(store: StoreHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_versions, "_PAGE_SUBMISSIONS", 2)
    items = await store.submit(6)
    for item, version in zip(items, ("12.2.0", "12.2.0", None, "13.1.0", "12.2.0"), strict=False):
        await judge(store, item, version)
    counts: dict[str, int] = {}
    async for row in iter_judged_with(store.database):
        counts[row.version] = counts.get(row.version, 0) + row.submissions
        assert row.language
        assert row.problem_slug
        assert row.last_created_at > 0
    assert counts == {"12.2.0": 3, "": 1, "13.1.0": 1}, "the sixth has no verdict"
