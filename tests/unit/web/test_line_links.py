"""Line references in messages become links."""

from __future__ import annotations

import pytest

from adjudge.web.line_links import TextSegment, link_lines


@pytest.mark.parametrize(
    ("file_name", "message", "named"),
    [
        ("main.cpp", "main.cpp:3:5: error: expected ';'", ["main.cpp:3"]),
        ("main.cpp", "In file included from main.cpp:1:\n./main.cpp: In function 'int main()':", ["main.cpp:1"]),
        ("Foo.java", "Foo.java:2: error: illegal start of expression", ["Foo.java:2"]),
        ("main.py", '  File "/app/main.py", line 4, in <module>', ['/app/main.py", line 4']),
        ("main.ml", 'File "main.ml", line 5, characters 2-3:', ['main.ml", line 5']),
        ("main.ts", "main.ts(2,7): error TS2322", ["main.ts(2"]),
        ("main.pas", "main.pas(4,1) Fatal: Syntax error", ["main.pas(4"]),
        ("main.rs", "  --> main.rs:1:9", ["main.rs:1"]),
        ("main.go", "./main.go:5:2: undefined: x", ["./main.go:5"]),
        ("main.pl", "syntax error at main.pl line 3, near", ["main.pl line 3"]),
        ("main.php", "Parse error: syntax error in main.php on line 2", ["main.php on line 2"]),
        ("main.sh", "main.sh: line 3: syntax error", ["main.sh: line 3"]),
        ("main.py", 'File "/usr/lib/python3.11/json/decoder.py", line 3, in decode', []),
        ("main.cpp", "/usr/include/c++/12/bits/stl_vector.h:3:1: note: here", []),
        ("main.cpp", "grader.cpp:12: error; domain.cpp:3: error; main.cpp.cpp:3; xmain.cpp:3; mainxcpp:3", []),
        ("Main.java", "Grader.java:12: error: cannot find symbol", []),
        ("main.cpp", "main.cpp:0: warning; main.cpp:99999999999999999999: error", []),
    ],
)
def test_line_references_of_compilers_are_found(file_name: str, message: str, named: list[str]) -> None:
    found = link_lines(message, [file_name])
    assert [piece.text for piece in found if piece.line is not None] == named
    assert "".join(piece.text for piece in found) == message


def test_message_without_reference_is_one_segment() -> None:
    assert link_lines("ld returned 1 exit status", ["main.cpp"]) == [TextSegment("ld returned 1 exit status")]
    assert link_lines("", ["main.cpp"]) == []
    assert link_lines("error:3: of a language that is no more", [""]) == [
        TextSegment("error:3: of a language that is no more")
    ]
    long = "A" * 1_000 + ".java"
    assert link_lines(f"{long}:3: no such file", [long]) == [TextSegment(f"{long}:3: no such file")]


def test_long_word_is_processed_fast() -> None:
    message = "a" * 1_000_000
    assert link_lines(message, ["main.cpp"]) == [TextSegment(message)]


def test_number_of_links_is_limited() -> None:
    message = "main.c:1 " * 5_000
    found = link_lines(message, ["main.c"])
    assert len([piece for piece in found if piece.line is not None]) == 200
    assert "".join(piece.text for piece in found) == message
