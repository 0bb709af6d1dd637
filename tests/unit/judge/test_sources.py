"""File names, main files and main classes."""

from __future__ import annotations

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.judge.languages import Languages
from adjudge.judge.sources import ProgramSource, SourceFile, layout_sources, parse_java

LANGUAGES = Languages.load()


def source(*names: str, entry_point: str = "", data: bytes = b"") -> ProgramSource:
    return ProgramSource(tuple(SourceFile(name, data) for name in names), entry_point)


@pytest.mark.parametrize(
    ("text", "public", "main"),
    [
        ("public class Sum { public static void main(String[] a) {} }", "Sum", "Sum"),
        ("class A {} class B { static public void main(String... a) {} }", "", "B"),
        ("package x.y; public final class Q { public static void main(String[] a){} }", "Q", "x.y.Q"),
        ("// class No { static void main(\nclass Yes { public static void main(String[] a) {} }", "", "Yes"),
        ('class S { String t = "class T { static void main("; public static void main(String[] a) {} }', "", "S"),
        ("class O { static class I { public static void main(String[] a) {} } }", "", ""),
        ("public record R(int x) { public static void main(String[] a) {} }", "R", "R"),
    ],
)
def test_java_shapes(text: str, public: str, main: str) -> None:
    shape = parse_java(text.encode())
    assert (shape.public, shape.qualified_main) == (public, main)


@pytest.mark.parametrize(
    "bomb", [b"/*" * 60_000, b'"' * 120_000, b"class " * 20_000, b"static " * 20_000, b"{" * 100_000]
)
def test_parse_java_is_linear(bomb: bytes) -> None:
    """In quadratic time these would take hours."""
    assert parse_java(bomb * 3).main == ""


def test_single_file_name_by_language() -> None:
    assert layout_sources(LANGUAGES.get("cpp"), source("whatever.txt")).main == "main.cpp"
    java = layout_sources(LANGUAGES.get("java"), source("x.java", data=b"public class Sum { }"))
    assert java.main == "Sum.java"


def test_main_file_of_several_sources() -> None:
    python = LANGUAGES.get("python3")
    assert layout_sources(python, source("a.py", "b.py", entry_point="b.py")).main == "b.py"
    assert layout_sources(python, source("a.py", "main.py")).main == "main.py"
    assert layout_sources(python, source("z.py", "a.py", "data.txt")).main == "a.py"
    with pytest.raises(InvalidInput, match=r"no Python 3 file \(.py, .py3\)"):
        layout_sources(python, source("a.c", "b.c"))


def test_extra_files_replace_submitted_ones() -> None:
    grader = SourceFile("grader.cpp", b"int main() {}")
    header = SourceFile("lib.h", b"")
    layout = layout_sources(LANGUAGES.get("cpp"), source("x.cpp", data=b"f"), [grader, header])
    assert layout.sources == ("main.cpp", "grader.cpp")
    assert {file.name for file in layout.files} == {"main.cpp", "grader.cpp", "lib.h"}


def test_names_and_codes_and_aliases() -> None:
    assert LANGUAGES.get("cpp").id == LANGUAGES.get("c++").id == "cpp20"
    assert LANGUAGES.get("PYTHON").id == "python3"
    assert LANGUAGES.for_file("x.py").id == "python3"  # type: ignore[union-attr]  # it is known
    assert LANGUAGES.for_file("x.unknown") is None
    with pytest.raises(InvalidInput, match="unknown language 'klingon'"):
        LANGUAGES.get("klingon")


def test_digest_covers_names_and_contents() -> None:
    assert source("a", "b").digest == source("b", "a").digest
    assert source("a", data=b"x").digest != source("a", data=b"y").digest
    assert source("ab", data=b"c").digest != source("a", data=b"bc").digest


@pytest.mark.parametrize(
    ("language", "expected"),
    [("java", "class"), ("kotlin", "class"), ("python3", "file"), ("rust", "file"), ("cpp20", "none"), ("c", "none")],
)
def test_kind_of_entry_point(language: str, expected: str) -> None:
    assert LANGUAGES.get(language).entry_point == expected


def test_kotlin_entry_point_is_a_class_and_not_a_file() -> None:
    kotlin = LANGUAGES.get("kotlin")
    assert layout_sources(kotlin, source("a.kt", "b.kt", entry_point="foo.BKt")).main_class == "foo.BKt"
    assert layout_sources(kotlin, source("a.kt", "b.kt", entry_point="b.kt")).main_class == ""
    assert layout_sources(kotlin, source("a.kt", "b.kt")).main_class == ""
