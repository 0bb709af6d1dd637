"""Problem, contest and language of a solution from its first lines and its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.cli.source_hints import SourceHints, problem_names, read_hints
from adjudge.domain.errors import InvalidInput
from adjudge.judge.sources import SourceFile


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("// adjudge: problem=sum language=cpp20\nint main() {}\n", SourceHints("sum", "", "cpp20")),
        ("#!/usr/bin/python3\n# adjudge: problem=sum contest=spring\n", SourceHints("sum", "spring")),
        ("(* adjudge: entry-point=main.ml *)\n", SourceHints(entry_point="main.ml")),
        ("x\n" * 20 + "# adjudge: problem=late\n", SourceHints()),
        ("print('adjudge is here')\n", SourceHints()),
        ("/* adjudge: problem=sum*/ int main() {}\n", SourceHints("sum")),
        ("# http://adjudge:8080/?a=1\n", SourceHints()),
        ("#!/\n", SourceHints()),
    ],
)
def test_first_lines_name_what_the_solution_is_for(text: str, hints: SourceHints) -> None:
    assert read_hints([SourceFile("a.cpp", text.encode())]) == hints


def test_interpreter_names_the_language_of_a_file_without_extension() -> None:
    assert read_hints([SourceFile("solve", b"#!/usr/bin/env pypy3\n")]).language == "pypy3"
    assert read_hints([SourceFile("solve.py", b"#!/usr/bin/env pypy3\n")]).language == ""


def test_contradiction_and_unknown_key_are_errors() -> None:
    with pytest.raises(InvalidInput, match=r"b.py: problem=two contradicts problem=one"):
        read_hints([SourceFile("a.py", b"# adjudge: problem=one"), SourceFile("b.py", b"# adjudge: problem=two")])
    with pytest.raises(InvalidInput, match=r"`adjudge: colour=` is unknown"):
        read_hints([SourceFile("a.py", b"# adjudge: colour=red")])


def test_names_that_a_file_may_stand_for() -> None:
    assert problem_names([Path("/work/hello-world_v2.min.py")]) == ["hello-world_v2", "hello-world", "hello", "work"]
    assert problem_names([Path("/work/multiples/main.cpp")]) == ["main", "multiples"]
    assert problem_names([Path("/contest/A.cpp")]) == ["a", "contest"]
