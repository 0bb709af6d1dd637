"""Whatever a submission contains leads to a verdict about the submission, never to a fault of ours."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.domain.limits import MIB
from adjudge.domain.problem import ProblemLimits
from adjudge.domain.programs import Checker, NativeChecker
from adjudge.domain.verdict import Verdict
from adjudge.judge.compile import SandboxFailed, refuse_lost
from adjudge.judge.pipeline import Judge, JudgeOptions, SubmittedProgram
from adjudge.judge.result_document import JudgeResult
from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.sandbox.report import CollectedFile, SandboxRunReport, SandboxVerdict
from tests.golden.package_builder import LIMITS, PackageBuilder, judged

pytestmark = pytest.mark.asyncio(loop_scope="session")

JAVA = "{package} public class {name} {{ public static void main(String[] args) {{ System.out.println(1); }} }}"


def java(name: str = "Main", package: str = "") -> str:
    return JAVA.format(name=name, package=f"package {package};" if package else "")


SOURCES: dict[str, tuple[str, str | bytes, str]] = {
    "long class name": ("java", java("A" * 300), "CE"),
    "class name whose class file is too long": ("java", java("A" * 250), "CE"),
    "long class name in letters of two bytes": ("java", java("Ä" * 130), "CE"),
    "class name that is not ASCII": ("java", java("Größe"), "AC"),
    "class name with a dollar": ("java", java("A$B"), "AC"),
    "long package name": ("java", java(package="a" * 300), "CE"),
    "deep package": ("java", java(package=".".join("a" * 40)), "CE"),
    "package that is not ASCII": ("java", java(package="größe.ähm"), "AC"),
    "no class": ("java", "", "CE"),
    "class name that is not UTF-8": ("java", b"public class A\xff\xfe { }", "CE"),
    "zero bytes in C": ("c", "int main(void) { char *zero = '\0\0'; return missing; }", "CE"),
    "zero bytes in Python": ("python3", "print(1)\0", "CE"),
    "deep nesting in Python": ("python3", "(" * 100_000, "CE"),
    "deep nesting in JavaScript": ("javascript", "(" * 100_000, "CE"),
    "not UTF-8": ("python3", b"print('\xff')", "CE"),
    "missing interpreter": (
        "c",
        'asm(".section .interp,\\"a\\"\\n.string \\"/nonexistent\\"\\n.text"); int main(void) { return 0; }',
        "RE",
    ),
    "interpreter that is a directory": (
        "c",
        'asm(".section .interp,\\"a\\"\\n.string \\"/usr\\"\\n.text"); int main(void) { return 0; }',
        "RE",
    ),
    "compiler that kills everybody": ("perl", "BEGIN { kill 9, -1; kill 9, $$ } print 1;", "CE"),
    "compiler that says zero bytes": ("perl", 'BEGIN { print STDERR "\\0\\xff"; die } print 1;', "CE"),
    "compiler that replaces the source": ("perl", 'BEGIN { unlink "main.pl"; mkdir "main.pl"; } print 1;', "AC"),
    "compiler that leaves odd files": (
        "perl",
        'BEGIN { symlink "/etc", "link"; system "mkfifo fifo"; open F, ">", "\\xff\\xfe"; } print 1;',
        "AC",
    ),
    "odd files at run time": (
        "bash",
        "mkfifo fifo; ln -s /etc link; mkdir -p a/b/c; : > $'\\xff\\xfe'; chmod 000 a; echo 1",
        "AC",
    ),
    "stdout made direct": (
        "c",
        # F_SETFL with O_DIRECT, O_NONBLOCK and O_APPEND
        'int puts(const char *), fcntl(int, int, ...);  int main(void) { fcntl(1, 4, 0x4c00); puts("1"); return 0; }',
        "AC",
    ),
    "stdout closed": ("bash", "exec 0<&- 1>&- 2>&-; exit 0", "WA"),
    "zero bytes on stderr": ("bash", "printf 'a\\0b\\xff' >&2; printf '\\0'; exit 3", "RE"),
    "signal to everybody": ("bash", "kill -KILL -1; kill -KILL $$", "RE"),
}


@pytest.fixture
def files(tmp_path: Path) -> PackageBuilder:
    return PackageBuilder(tmp_path)


def storable(result: JudgeResult) -> bool:
    """Whether PostgreSQL can keep the document: it has no text with a zero byte or half a surrogate pair."""
    texts = list(texts_of(result.document()))
    return "\0" not in "".join(texts) and bool("".join(texts).encode())


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from texts_of(part)


async def judged_bytes(judge: Judge, files: PackageBuilder, data: bytes, language: str) -> JudgeResult:
    problem = files.problem(("1\n", "1\n"))
    return await judge.judge(
        problem, files, SubmittedProgram(ProgramSource((SourceFile("source", data),)), language), JudgeOptions()
    )


@pytest.mark.parametrize("name", SOURCES)
async def test_hostile_source_gets_verdict(judge: Judge, files: PackageBuilder, name: str) -> None:
    language, text, verdict = SOURCES[name]
    result = await judged_bytes(judge, files, text.encode() if isinstance(text, str) else text, language)
    assert result.verdict == verdict, result.message
    assert storable(result)


TEMPLATES = {
    "c": b'#include <stdio.h>\nint main(void) { puts("1"); return 0; }\n',
    "python3": b"import sys\nprint(1)\n",
    "java": java().encode(),
    "bash": b"echo 1\n",
    "perl": b"print 1;\n",
}
PIECES = (
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r",
    b"{",
    b"}",
    b'"',
    b"\\u0000",
    b"/*",
    b"\xed\xa0\x80",
    b"A" * 5_000,
    b"",
)


@pytest.mark.slow
@pytest.mark.parametrize("language", TEMPLATES)
async def test_corrupted_sources_get_verdict(judge: Judge, files: PackageBuilder, language: str) -> None:
    chance = random.Random(f"damage to {language}")  # the same damage every time
    for _ in range(12):
        data = bytearray(TEMPLATES[language])
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data) + 1)
            data[place : place + chance.randint(0, 3)] = chance.choice(PIECES)
        result = await judged_bytes(judge, files, bytes(data), language)
        assert result.verdict is not Verdict.SE, bytes(data)
        assert storable(result)


SETS_OF_FILES: dict[str, tuple[str, dict[str, bytes]]] = {
    "no source": ("python3", {"readme.txt": b"", "notes.md": b""}),
    "file and directory of one name": ("python3", {"main.py": b"print(1)", "lib": b"", "lib/x.py": b""}),
    "too many files": ("python3", {f"m{number}.py": b"" for number in range(100)}),
    "name that leaves the directory": ("python3", {"main.py": b"print(1)", "../x.py": b""}),
    "absolute name": ("python3", {"main.py": b"print(1)", "/etc/x.py": b""}),
    "name with a zero byte": ("python3", {"main.py": b"print(1)", "a\0b.py": b""}),
    "name with half a surrogate pair": ("python3", {"main.py": b"print(1)", "\ud800.py": b""}),
    "long name": ("python3", {"main.py": b"print(1)", "x" * 300: b""}),
    "long path": ("python3", {"main.py": b"print(1)", "/".join(["x" * 200] * 6): b""}),
}


@pytest.mark.parametrize("name", SETS_OF_FILES)
async def test_hostile_file_sets_are_compile_errors(judge: Judge, files: PackageBuilder, name: str) -> None:
    language, contents = SETS_OF_FILES[name]
    source = ProgramSource(tuple(SourceFile(path, data) for path, data in contents.items()))
    result = await judge.judge(files.problem(("1\n", "1\n")), files, SubmittedProgram(source, language), JudgeOptions())
    assert result.verdict is Verdict.CE, result.message


OUTPUTS = ("9" * 10_000, "1e999999999", "nan", "-inf", "0x1p99999", "\\0", "\\xff\\xfe", "1e" + "9" * 5_000, "")


@pytest.mark.parametrize("kind", NativeChecker)
async def test_hostile_outputs_get_verdict(judge: Judge, files: PackageBuilder, kind: NativeChecker) -> None:
    for output in OUTPUTS:
        answer = "YES" if kind in (NativeChecker.YESNO, NativeChecker.NYESNO) else "1"
        problem = files.problem(("1\n", answer), checker=Checker(native=kind))
        result = await judged(judge, problem, files, f"printf '{output}'")
        assert result.verdict is not Verdict.SE, (output[:20], result.message)


async def test_oversized_program_is_compile_error(judge: Judge, files: PackageBuilder) -> None:
    limits = ProblemLimits(run=LIMITS, compile_memory_bytes=2048 * MIB)
    problem = replace(files.problem(("1\n", "1\n")), limits=limits)
    small = Judge(judge.sandbox, judge.languages, judge.cache, artifact_bytes=4 * MIB)
    source = "int big[{size}] = {{1}}; int main(void) {{ return 0; }}"
    for size, verdict in ((1024, Verdict.WA), (4 * MIB, Verdict.CE)):
        result = await judged(small, problem, files, source.format(size=size), "c")
        assert result.verdict is verdict, result.message


async def test_full_host_disk_is_not_compile_error() -> None:
    report = SandboxRunReport(SandboxVerdict.OK, 1, 1, 1, 0, 0, collected=(CollectedFile("main", 0, 0, "ENOSPC"),))
    with pytest.raises(SandboxFailed, match="ENOSPC"):
        refuse_lost(report)
