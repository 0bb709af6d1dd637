"""``adjudge languages --outdated``: pins, workers and judged submissions compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.cli import main
from adjudge.cli.outdated_languages import compare_versions, print_outdated
from adjudge.domain.verdict import Verdict
from adjudge.registry import LiveProcess, ProcessInfo
from adjudge.store.jobs.models import JobResult
from adjudge.store.judging.models import Judgement
from tests.support.store_harness import StoreHarness, fence_of


async def judged_with(store: StoreHarness, version: str) -> str:
    """Judge a new submission; returns its language."""
    (item,) = await store.submit()
    (job,) = (await store.claim(item.job_id)).done
    document = {"provenance": {"language_version": version}}
    finished = JobResult(fence_of(job), result=document, typed_result=Judgement(Verdict.AC))
    await store.transact(lambda tx: store.jobs.finish_and_claim_next(tx, [finished]))
    row = await store.row("SELECT language FROM submissions WHERE id = :id", id=item.submission_id)
    return str(row["language"])


async def test_versions_of_workers_and_submissions_are_compared(
    store: StoreHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    language = await judged_with(store, "12.2.0")
    for version in ("12.2.0", "13.1.0"):
        await judged_with(store, version)
    versions = (("w1", "13.1.0"), ("w2", "13.3.0"))
    online = [
        LiveProcess(ProcessInfo(name, "host", 1, "1.0", 1, {language: version}), 9.0, 1.0) for name, version in versions
    ]
    found = await compare_versions(store.database, online, {})
    assert found.workers == {language: {"13.1.0": ["w1"], "13.3.0": ["w2"]}}
    (old,) = found.submissions
    assert (old.language, old.judged_with, old.current, old.submissions) == (
        language,
        "12.2.0",
        ("13.1.0", "13.3.0"),
        2,
    )
    print_outdated(found)
    printed = capsys.readouterr().out
    assert "13.1.0 on w1; 13.3.0 on w2" in printed
    assert "adjudge rejudge create --language" in printed


def test_without_a_database_only_pins_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ADJUDGE_DATABASE_URL", raising=False)
    done = CliRunner().invoke(main, ["languages", "--outdated", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"pins": [], "workers": {}, "submissions": [], "has_database": False}
    (tmp_path / "languages.toml").write_text('[bash]\npin = "1.0"\n')
    monkeypatch.setenv("ADJUDGE_JUDGE_LANGUAGES_FILE", "languages.toml")
    printed = CliRunner().invoke(main, ["languages", "--outdated"]).stdout
    assert "bash: 1.0 is pinned, " in printed
    assert "were not compared" in printed
    assert [file.name for file in tmp_path.iterdir()] == ["languages.toml"]
