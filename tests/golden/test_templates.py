"""List languages's template is a program that is accepted by the problem it is a template for."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.domain.verdict import Verdict
from adjudge.judge.languages import Language, Languages
from adjudge.judge.pipeline import Judge, SubmittedProgram
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.packages.load import load_package
from adjudge.services.languages import template_for
from tests.support.problem_packages import icpc_package

LANGUAGES = [language for language in Languages.load() if not language.id.startswith("cpp") or language.is_default]


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)
@pytest.mark.asyncio(loop_scope="session")
async def test_template_adds_two_numbers(judge: Judge, tmp_path: Path, language: Language) -> None:
    source = template_for(language)
    assert source is not None
    if not judge.languages.toolchain(language).usable:
        return  # which toolchains a machine must have is the concern of the languages' own tests
    for name, data in icpc_package().items():
        (tmp_path / "sum" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sum" / name).write_bytes(data)
    with load_package(tmp_path / "sum") as read:
        submission = SubmittedProgram(ProgramSource((SourceFile(language.source, source.encode()),)), language.id)
        result = await judge.judge(read.problem, read.files, submission)
    assert result.verdict is Verdict.AC, result.message
