"""Differences between two submissions."""

from adjudge.judge.sources import ProgramSource, SourceFile
from adjudge.web.source_diff import diff_sources


def source(**files: str) -> ProgramSource:
    return ProgramSource(tuple(SourceFile(name.replace("_", "."), text.encode()) for name, text in files.items()))


def test_single_files_are_compared_whatever_their_names_are() -> None:
    (found,) = diff_sources(source(a_c="int x;\nint y;\n"), source(b_cpp="int x;\nint z;\n"))
    assert (found.name, found.lines) == ("b.cpp", ("@@ -1,2 +1,2 @@", " int x;", "-int y;", "+int z;"))


def test_several_files_are_compared_by_name() -> None:
    old, new = source(a_c="1\n", b_c="2\n", c_c="3\n"), source(a_c="1\n", b_c="4\n", d_c="5\n")
    assert [item.name for item in diff_sources(old, new)] == ["b.c", "c.c", "d.c"]
    assert diff_sources(old, old) == []


def test_binary_files_are_left_out() -> None:
    assert diff_sources(source(a_out="x\0y", b_out="1"), source(a_out="x\0z", b_out="1")) == []
