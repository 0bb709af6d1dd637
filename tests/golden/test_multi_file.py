"""Programs of several files: packages of Java, scripts that read their siblings."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from adjudge.domain.problem import Case
from adjudge.domain.programs import FileRef, Interactor, InteractorProtocol
from adjudge.domain.verdict import Verdict
from adjudge.judge.pipeline import Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.judge.sources import ProgramSource, SourceFile
from tests.golden.package_builder import PackageBuilder

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def files(tmp_path: Path) -> PackageBuilder:
    return PackageBuilder(tmp_path)


async def judged_files(judge: Judge, files: PackageBuilder, language: str, contents: dict[str, str]) -> JudgeResult:
    source = ProgramSource(tuple(SourceFile(name, text.encode()) for name, text in contents.items()))
    return await judge.judge(files.problem(("1\n", "1\n")), files, SubmittedProgram(source, language), JudgeOptions())


HELPER = "package {package}; public class {name} {{ public static int one() {{ return 1; }} }}"
CALLER = (
    "package {package}; import {helper}; public class {name} {{ public static void main(String[] args) {{ "
    "System.out.println({call}.one()); }} }}"
)


@pytest.mark.parametrize("folders", [True, False])
async def test_java_classes_of_several_packages(judge: Judge, files: PackageBuilder, *, folders: bool) -> None:
    """As DOMjudge's own example has them: the class without ``main`` comes first by its name."""
    helper = HELPER.format(package="foo.bar.a", name="A")
    caller = CALLER.format(package="zoo.goo.moo.b", helper="foo.bar.a.A", name="B", call="A")
    names = ("foo/bar/a/A.java", "zoo/goo/moo/b/B.java") if folders else ("A.java", "B.java")
    result = await judged_files(judge, files, "java", {names[0]: helper, names[1]: caller})
    assert result.verdict is Verdict.AC, result.message


async def test_java_names_that_are_not_ascii(judge: Judge, files: PackageBuilder) -> None:
    helper = HELPER.format(package="größe", name="Maß")
    caller = CALLER.format(package="наш", helper="größe.Maß", name="Ответ", call="Maß")
    result = await judged_files(judge, files, "java", {"Maß.java": helper, "Ответ.java": caller})
    assert result.verdict is Verdict.AC, result.message


async def test_java_without_a_main_is_a_runtime_error(judge: Judge, files: PackageBuilder) -> None:
    helper = HELPER.format(package="foo", name="A")
    result = await judged_files(judge, files, "java", {"A.java": helper, "B.java": helper.replace(" A ", " B ")})
    assert result.verdict is Verdict.RE, result.message


SCRIPTS = {
    "bash": {"main.sh": ". ./parts/one.sh\ncat ./answer.txt", "parts/one.sh": "true", "answer.txt": "1\n"},
    "python3": {
        "main.py": "import parts.one\nprint(open('./answer.txt').read())",
        "parts/one.py": "",
        "answer.txt": "1",
    },
    "perl": {
        "main.pl": "require './one.pm'; open F, '<', './answer.txt'; print <F>;",
        "one.pm": "1;",
        "answer.txt": "1",
    },
}


@pytest.mark.parametrize("language", SCRIPTS)
async def test_script_siblings_are_in_working_directory(judge: Judge, files: PackageBuilder, language: str) -> None:
    result = await judged_files(judge, files, language, SCRIPTS[language])
    assert result.verdict is Verdict.AC, result.message


async def test_case_files_have_precedence_over_script_files(judge: Judge, files: PackageBuilder) -> None:
    (files.root / "given").write_text("1\n")
    case = Case("1", "", "1.in", "1.ans", files=(FileRef("answer.txt", "given"),))
    problem = replace(files.problem(("1\n", "1\n")), cases=(case,))
    source = ProgramSource((SourceFile("main.sh", b"cat answer.txt"), SourceFile("answer.txt", b"forged\n")))
    result = await judge.judge(problem, files, SubmittedProgram(source, "bash"), JudgeOptions())
    assert result.verdict is Verdict.AC, result.message


async def test_script_siblings_in_interactive_problem(judge: Judge, files: PackageBuilder) -> None:
    interactor = Interactor(
        InteractorProtocol.TESTLIB, files.program("ask.sh", 'read -r said; cp /dev/null "$2"; [ "$said" = 1 ]')
    )
    problem = files.problem(("1\n", ""), interactor=interactor)
    source = ProgramSource((SourceFile("main.sh", b"cat answer.txt"), SourceFile("answer.txt", b"1\n")))
    result = await judge.judge(problem, files, SubmittedProgram(source, "bash"), JudgeOptions())
    assert result.verdict is Verdict.AC, result.message


async def judged_entry(
    judge: Judge, files: PackageBuilder, language: str, contents: dict[str, str], entry: str
) -> Verdict:
    source = ProgramSource(tuple(SourceFile(name, text.encode()) for name, text in contents.items()), entry)
    result = await judge.judge(files.problem(("1\n", "1\n")), files, SubmittedProgram(source, language), JudgeOptions())
    assert result.document()["provenance"]["entry_point"] == entry
    return result.verdict


JAVA_MAIN = "public class {0} {{ public static void main(String[] args) {{ System.out.println({1}); }} }}"
TWO_PROGRAMS = [
    ("python3", {"one.py": "print(1)", "two.py": "print(2)"}, "one.py", "two.py"),
    ("java", {"One.java": JAVA_MAIN.format("One", 1), "Two.java": JAVA_MAIN.format("Two", 2)}, "One", "Two"),
]


@pytest.mark.parametrize(("language", "contents", "right", "wrong"), TWO_PROGRAMS)
async def test_entry_point_selects_program(
    judge: Judge, files: PackageBuilder, language: str, contents: dict[str, str], right: str, wrong: str
) -> None:
    """The same files with another entry point are another program: the compile cache tells them apart."""
    assert await judged_entry(judge, files, language, contents, right) is Verdict.AC
    assert await judged_entry(judge, files, language, contents, wrong) is Verdict.WA
    assert await judged_entry(judge, files, language, contents, right) is Verdict.AC


async def test_cpp_with_header_and_second_source(judge: Judge, files: PackageBuilder) -> None:
    contents = {
        "main.cpp": '#include <iostream>\n#include "lib/one.h"\nint main() { std::cout << one() << "\\n"; }',
        "lib/one.h": "int one();",
        "lib/one.cpp": '#include "one.h"\nint one() { return 1; }',
    }
    result = await judged_files(judge, files, "cpp20", contents)
    assert result.verdict is Verdict.AC, result.message
    named = {entry["name"]: entry["sha256"] for entry in result.document()["provenance"]["files"]}
    assert named == {name: sha256(text.encode()).hexdigest() for name, text in contents.items()}
