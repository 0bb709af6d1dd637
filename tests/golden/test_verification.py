"""Verifying a package on a machine that lacks some of its languages: what can be judged is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.judge.compile import SandboxFailed
from adjudge.judge.languages import Language, Languages
from adjudge.judge.pipeline import Judge
from adjudge.packages.archive import open_package
from adjudge.packages.findings import Findings
from adjudge.packages.load import load_package, read_package
from adjudge.packages.verifier import VerificationReport, Verifier

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

ECHO = "print(input())\n"
PACKAGE = {
    "problem.yaml": "problem_format_version: 2025-09\nname: Echo\nuuid: 1\nlimits: {time_limit: 2}\n",
    "data/secret/1.in": "1\n",
    "data/secret/1.ans": "1\n",
    "data/valid_output/1.in": "1\n",
    "data/valid_output/1.ans": "1\n",
    "data/valid_output/1.out": "1\n",
    "submissions/accepted/a.py": ECHO,
    "submissions/accepted/b.absent": "whatever\n",
    "submissions/accepted/c.unheard": "whatever\n",
    "submissions/accepted/d.py": ECHO,
}


async def verified(judge: Judge, folder: Path, **more: str) -> VerificationReport:
    for name, text in (PACKAGE | more).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    absent = Language("absent", "Absent", "absent", ("absent",), "main.absent", ("no-such-tool",), ("no-such-tool",))
    lacking = Judge(judge.sandbox, Languages([*Languages.load(), absent]), judge.cache)
    with open_package(folder) as files:  # and not ``loaded``, which refuses a checker in a language that nobody knows
        return await Verifier(lacking, read_package(files, "echo", Findings()), 2).run()


async def test_solutions_in_missing_language_are_reported(judge: Judge, tmp_path: Path) -> None:
    found = await verified(judge, tmp_path)
    rows = {item.submission.path: (item.outcome.verdict, " ".join(item.reasons)) for item in found.judged}
    assert rows["accepted/a.py"] == rows["accepted/d.py"] == (Verdict.AC, "")
    assert rows["accepted/b.absent"][0] is Verdict.SE
    assert "no-such-tool is not installed" in rows["accepted/b.absent"][1]
    assert "could not be judged" in rows["accepted/c.unheard"][1]
    assert not found.ok


async def test_validator_in_missing_language_is_reported_once(judge: Judge, tmp_path: Path) -> None:
    right = {"input_validators/right.py": "import sys\nsys.exit(42)\n"}
    found = await verified(judge, tmp_path, **right, **{"input_validators/v.absent": "whatever\n"})
    assert [(item.where, "no-such-tool" in item.message) for item in found.issues] == [("v.absent", True)]
    assert [item.outcome.verdict for item in found.judged].count(Verdict.AC) == 2


async def test_checker_in_missing_language_is_reported(judge: Judge, tmp_path: Path) -> None:
    found = await verified(judge, tmp_path, **{"output_validator/v.absent": "whatever\n"})
    assert [item.where for item in found.issues] == ["checker"]
    assert {item.outcome.verdict for item in found.judged} == {Verdict.SE}


class FailingJudge:
    """The first submission meets a sandbox that fails; the others would run for ever."""

    def __init__(self, judge: Judge) -> None:
        self.compiler, self.sandbox = judge.compiler, judge.sandbox
        self.running, self.stopped = 0, 0
        self.others = asyncio.Event()

    async def judge(self, *_: object) -> None:
        self.running += 1
        if self.running == 1:
            await self.others.wait()
            raise SandboxFailed
        self.others.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped += 1


async def test_sandbox_failure_cancels_other_submissions(judge: Judge, tmp_path: Path) -> None:
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    failing = FailingJudge(judge)
    with load_package(tmp_path) as package, pytest.raises(SandboxFailed):
        await Verifier(cast("Any", failing), package, 2).run()
    assert failing.stopped == failing.running - 1 > 0
