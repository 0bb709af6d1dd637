"""Built-in comparators: what they ignore, messages, memory use."""

from __future__ import annotations

import io
import tracemalloc
from fractions import Fraction

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.programs import NativeChecker
from adjudge.judge.comparators import BUILTIN_COMPARATORS, Comparison, ComparisonStatus, build_comparator


def said(kind: str, answer: str | bytes, output: str | bytes) -> Comparison:
    name, *flags = kind.split()
    one = answer.encode() if isinstance(answer, str) else answer
    two = output.encode() if isinstance(output, str) else output
    return build_comparator(name, flags).compare_bytes(one, two)


def test_checker_eol_unicode_float_epsilon() -> None:
    crlf, bom = "a b\r\nc\r\n", b"\xef\xbb\xbfa b\nc\n"
    for kind in ("exact", "line", "token"):
        assert said(kind, "a b\nc\n", crlf).accepted
        assert said(kind, "a b\nc\n", "a b\rc\r").accepted
        assert said(kind, "a b\nc\n", bom).accepted
    assert not said("exact binary", "a b\nc\n", crlf).accepted

    composed, decomposed = "é\n", "e\u0301\n"
    for kind in ("exact", "line", "token"):
        assert not said(kind, composed, decomposed).accepted
        assert said(f"{kind} nfc", composed, decomposed).accepted
    assert said("token nfc case_insensitive", "STRASSE É", "straße e\u0301").accepted
    assert not said("token nfc", "É", "é").accepted

    assert said("float abs=1e-6", "1.0", "1.0000009").accepted
    assert not said("float abs=1e-6", "1.0", "1.0000011").accepted
    assert not said("float abs=1e-6", "1000000000", "1000000500").accepted
    assert said("float rel=1e-6", "1000000000", "1000000500").accepted
    assert not said("float rel=1e-6", "0", "0.0000001").accepted
    assert said("float abs=1e-6 rel=1e-6", "0 1000000000", "0.0000001 1000000500").accepted
    assert not said("float", "1.0", "nan").accepted
    assert not said("float", "1.0", "inf").accepted


def test_line_policies() -> None:
    assert said("line", "a\nb\n", "a  \nb\n\n\n").accepted
    assert not said("line", "a\nb\n", " a\nb\n").accepted
    assert not said("line whitespace=strict", "a\nb\n", "a \nb\n").accepted
    assert said("line whitespace=collapse", "a b\n", "  a \t b\n").accepted
    assert not said("line whitespace=collapse", "a\nb\n", "a b\n").accepted
    assert said("line case_insensitive", "Yes\n", "yES\n").accepted


def test_multiset_comparators_ignore_order() -> None:
    assert said("sorted", "a b\nc\n", "c\na  b\n").accepted
    assert not said("sorted", "a b\nc\n", "c a\nb\n").accepted
    assert said("sorted by=tokens", "a b\nc\n", "c a\nb\n").accepted
    assert not said("sorted", "a\na\nb\n", "a\nb\nb\n").accepted
    assert "'b' is missing" in said("sorted", "a\nb\n", "a\na\n").message


def test_message_names_position_of_first_difference() -> None:
    assert said("token", "1 2 3", "1 5 3").message == "token 2: expected '2', found '5'"
    assert said("line", "a\nb\n", "a\nc\n").message == "line 2: expected 'b', found 'c'"
    assert "found the end of the output" in said("token", "1 2", "1").message
    assert "expected the end of the output, found '3'" in said("token", "1", "1 3").message
    assert "off by 1" in said("float", "1", "2").message
    assert said("icpc", "Yes NO", "yES YES").message == "token 2: expected 'NO', found 'YES'"
    assert said("token", "x", b"\x1b[31m\n").message == "token 1: expected 'x', found '\\x1b[31m'"


def test_comparison_status() -> None:
    assert said("ncmp", "1", "x").status is ComparisonStatus.FORMAT_ERROR
    assert said("ncmp", "x", "1").status is ComparisonStatus.JURY_ERROR
    assert said("ncmp", "x", "x").status is ComparisonStatus.JURY_ERROR
    assert said("icmp", "1", "2147483648").status is ComparisonStatus.FORMAT_ERROR
    assert said("hcmp", "1" * 300, "1" * 300).accepted
    assert said("yesno", "YES", "no").status is ComparisonStatus.WRONG_ANSWER
    assert said("yesno", "YES", "maybe").status is ComparisonStatus.FORMAT_ERROR
    assert said("nyesno", "YES NO", "yes").status is ComparisonStatus.WRONG_ANSWER
    assert said("dmoj-linecount", "1\n2\n3\n", "1\n9\n3\n").score == Fraction(2, 3)


@pytest.mark.parametrize("kind", ["icmp", "hcmp", "rcmp", "yesno"])
@pytest.mark.parametrize("answer", ["", " \n"])
@pytest.mark.parametrize("output", ["", "\n", "1", "YES"])
def test_empty_answer_is_jury_error(kind: str, answer: str, output: str) -> None:
    assert said(kind, answer, output).status is ComparisonStatus.JURY_ERROR


@pytest.mark.parametrize("kind", ["ncmp", "nyesno", "rcmp4", "rcmp6", "rcmp9", "rncmp", "wcmp", "lcmp", "fcmp"])
def test_empty_sequence_is_accepted(kind: str) -> None:
    assert said(kind, "", "").accepted
    assert said(kind, "", "\n").accepted


@pytest.mark.parametrize(
    ("answer", "output", "accepted"),
    [
        ("a\n\n", "a\n  \n", True),
        ("a\n\n", "a\n \t\n\n  ", True),
        ("a\n\n", "a\n", True),
        ("a\n\n\n", "a\n", True),
        ("a\n\n\n", "a\n \n", False),
        ("a\n \n", "a\n", False),
        ("a\n\nb\n", "a\n \nb\n", False),
        ("\n", "  ", True),
        ("a\n\n", "a\nb\n", False),
    ],
)
def test_fcmp_stops_at_an_empty_last_line_of_the_answer(answer: str, output: str, accepted: bool) -> None:
    assert said("fcmp", answer, output).accepted is accepted


@pytest.mark.parametrize(
    ("answer", "output"),
    [("16", "0x10"), ("100", "100e"), ("0", "0e+"), ("100", "100E-"), ("a", "a\x00b"), ("16", "0x1p4")],
)
def test_default_validator_legacy_and_2025_09(answer: str, output: str) -> None:
    assert said("icpc float_tolerance 1e-6", answer, output).accepted
    assert not said("icpc-2025-09 float_tolerance 1e-6", answer, output).accepted


@pytest.mark.parametrize("token", ["0x10", "100e", "0e+", "nan", "inf", "1_0", "1e999"])
def test_non_numbers_are_compared_as_text_in_2025_09(token: str) -> None:
    assert said("icpc-2025-09 float_tolerance 1e-6", f"{token} 1", f"{token.upper()} 1.0").accepted is (
        token != "1e999"
    )
    assert said("icpc-2025-09 float_tolerance 1e-6", f"{token} 1", f"{token} 1.0").accepted


def test_every_native_checker_has_a_comparator() -> None:
    assert {checker.value for checker in NativeChecker} <= set(BUILTIN_COMPARATORS)


@pytest.mark.parametrize(
    ("kind", "flags", "words"),
    [
        ("tokens", "", "unknown comparator 'tokens'"),
        ("icpc", "float_tolerance", "float_tolerance must be a number"),
        ("icpc", "float_tolerance -1", "float_tolerance must be a number"),
        ("icpc", "sloppy", "unknown option 'sloppy'"),
        ("sorted", "by=size", "must be one of lines, tokens"),
    ],
)
def test_invalid_options_are_rejected(kind: str, flags: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        build_comparator(kind, flags.split())


class Endless(io.RawIOBase):
    """``size`` bytes of a pattern that are nowhere."""

    def __init__(self, pattern: bytes, size: int, head: bytes = b"") -> None:
        self.pattern, self.size, self.head, self.at = pattern * (262_144 // len(pattern) + 2), size, head, 0
        self.period = len(pattern)

    def read(self, size: int = -1, /) -> bytes:
        size = min(size, self.size - self.at)
        start = self.at
        self.at += size
        if start < len(self.head):
            return (self.head[start:] + self.pattern[:size])[:size]
        offset = (start - len(self.head)) % self.period
        return self.pattern[offset : offset + size]

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.at = offset
        return offset


MIB = 1024 * 1024
LINES = b"12345 some words 3.25\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["icpc", "token", "line", "exact", "lcmp", "fcmp", "dmoj-standard", "white-diff"])
@pytest.mark.parametrize("pattern", [LINES, b" "], ids=["lines", "blanks"])
def test_large_outputs_compare_in_constant_memory(kind: str, pattern: bytes) -> None:
    comparator = build_comparator(kind)
    size = (128 if pattern == b" " else 1024) * MIB
    tracemalloc.start()
    try:
        assert comparator.compare(Endless(pattern, size), Endless(pattern, size)).accepted
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*BUILTIN_COMPARATORS, "icpc float_tolerance 1e-6", "sorted by=tokens", "token nfc"])
@pytest.mark.parametrize("pattern", [LINES, b"7" * 11, b" "], ids=["lines", "one word", "blanks"])
def test_outputs_that_differ_early_compare_in_constant_memory(kind: str, pattern: bytes) -> None:
    name, *flags = kind.split()
    answer, output = Endless(pattern, MIB), Endless(pattern, MIB, head=b"1 \n \n")
    tracemalloc.start()
    try:
        build_comparator(name, flags).compare(answer, output)
        assert tracemalloc.get_traced_memory()[1] < 24 * MIB
    finally:
        tracemalloc.stop()


def test_long_tokens_are_compared() -> None:
    blanks = b" " * 200_000
    assert said("line", b"a" + blanks + b"b\n", b"a" + blanks + b"b" + blanks + b"\n").accepted
    assert not said("line", b"a" + blanks + b"b\n", b"a" + blanks + b" b\n").accepted
    word = b"9" * 3_000_000
    assert said("float", word, word).accepted
    assert not said("float", word + b"8", word + b"7").accepted
