"""Streaming comparators equal naive ones for all chunk sizes."""

from __future__ import annotations

import io
import re
import unicodedata
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.judge.comparators import build_comparator
from adjudge.judge.comparators.numbers import scanf_float, spec_float

ALPHABET = [b"a", b"B", b"b", b"1", b"2", b".", b"-", b" ", b" ", b"\n", b"\n", b"\r", b"\t", b"\x0b", b"\x0c", b"\x00"]
Naive = Callable[[bytes, bytes], bool]


def eol(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def bare(text: bytes) -> bytes:
    return text.removeprefix(b"\xef\xbb\xbf")


def c_words(text: bytes) -> list[bytes]:
    return [word.split(b"\0", 1)[0] for word in text.split()]


def wcmp_words(text: bytes) -> list[bytes]:
    return re.findall(rb"[^ \t\r\n]+", bare(text))


def lines_of(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def right_stripped(text: bytes) -> list[bytes]:
    lines = [line.rstrip() for line in eol(bare(text)).split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def line_words(text: bytes) -> list[list[bytes]]:
    lines = [line.split() for line in text.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def paragraph(text: bytes) -> list[list[bytes]]:
    return [line.split() for line in re.split(rb"[\r\n]", text) if line.split()]


def fcmp(answer: bytes, output: bytes) -> bool:
    wanted = lines_of(bare(answer).replace(b"\r\n", b"\n"))
    text = bare(output).replace(b"\r\n", b"\n")
    if wanted and not wanted[-1]:
        wanted.pop()
    for line in wanted:
        found, newline, rest = text.partition(b"\n")
        if line != found:
            return False
        text = rest if newline else b""
    return not text.strip(b" \t\r\n")


def icpc_float(answer: bytes, output: bytes) -> bool:
    wanted, found = c_words(answer), c_words(output)
    return len(wanted) == len(found) and all(map(_icpc_token, wanted, found))


def _icpc_token(wanted: bytes, found: bytes, read: Callable[[bytes], float | None] = scanf_float) -> bool:
    number, other = read(wanted), read(found)
    if number is None:
        return wanted.lower() == found.lower()
    return other is not None and abs(number - other) <= max(0.5, 0.5 * abs(number))


def specified_float(answer: bytes, output: bytes) -> bool:
    wanted, found = answer.split(), output.split()
    return len(wanted) == len(found) and all(
        _icpc_token(one, two, spec_float) for one, two in zip(wanted, found, strict=True)
    )


def our_float(answer: bytes, output: bytes) -> bool:
    wanted, found = bare(answer).split(), bare(output).split()
    if len(wanted) != len(found):
        return False
    for one, two in zip(wanted, found, strict=True):
        number, other = spec_float(one), spec_float(two)
        if number is None:
            if one != two:
                return False
        elif other is None or abs(number - other) > 0.5:
            return False
    return True


NAIVE: dict[str, Naive] = {
    "icpc": lambda a, b: [w.lower() for w in c_words(a)] == [w.lower() for w in c_words(b)],
    "icpc case_sensitive": lambda a, b: c_words(a) == c_words(b),
    "icpc float_tolerance 0.5": icpc_float,
    "icpc-2025-09": lambda a, b: a.lower().split() == b.lower().split(),
    "icpc-2025-09 case_sensitive space_change_sensitive": lambda a, b: a == b,
    "icpc-2025-09 float_tolerance 0.5": specified_float,
    "exact": lambda a, b: eol(bare(a)) == eol(bare(b)),
    "exact binary": lambda a, b: a == b,
    "exact nfc": lambda a, b: nfc(eol(bare(a))) == nfc(eol(bare(b))),
    "line": lambda a, b: right_stripped(a) == right_stripped(b),
    "line whitespace=collapse": lambda a, b: line_words(eol(bare(a))) == line_words(eol(bare(b))),
    "token": lambda a, b: bare(a).split() == bare(b).split(),
    "token case_insensitive": lambda a, b: bare(a).lower().split() == bare(b).lower().split(),
    "token nfc case_insensitive": lambda a, b: folded(bare(a)) == folded(bare(b)),
    "float abs=0.5": our_float,
    "sorted": lambda a, b: sorted(filter(None, line_words(bare(a)))) == sorted(filter(None, line_words(bare(b)))),
    "sorted by=tokens": lambda a, b: sorted(bare(a).split()) == sorted(bare(b).split()),
    "wcmp": lambda a, b: wcmp_words(a) == wcmp_words(b),
    "lcmp": lambda a, b: line_words(bare(a)) == line_words(bare(b)),
    "fcmp": fcmp,
    "dmoj-standard": lambda a, b: paragraph(a) == paragraph(b),
    "dmoj-identical": lambda a, b: a == b,
    "dmoj-rstripped": lambda a, b: (
        [x.rstrip() for x in re.split(rb"[\r\n]", a)] == [x.rstrip() for x in re.split(rb"[\r\n]", b)]
    ),
    "dmoj-sorted": lambda a, b: (
        sorted(x.split() for x in re.split(rb"[\r\n]", a) if x)
        == sorted(x.split() for x in re.split(rb"[\r\n]", b) if x)
    ),
    "dmoj-easy": lambda a, b: Counter(b"".join(a.lower().split())) == Counter(b"".join(b.lower().split())),
    "white-diff": lambda a, b: line_words(a) == line_words(b),
}


def nfc(text: bytes) -> bytes:
    return unicodedata.normalize("NFC", text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def folded(text: bytes) -> list[bytes]:
    decoded = unicodedata.normalize("NFC", text.decode("utf-8", "surrogateescape")).casefold()
    return unicodedata.normalize("NFC", decoded).encode("utf-8", "surrogateescape").split()


LETTERS = st.sampled_from([*ALPHABET, "é".encode(), "e\u0301".encode(), "ß".encode(), b"\xef\xbb\xbf", b"\xff"])
TEXTS = st.lists(LETTERS, max_size=14).map(b"".join)
EDITS = st.sampled_from([b"", b" ", b"\n", b"\r\n", b"\t", b"A", b"\x00", b"0", "\u0301".encode()])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two outputs that are close to each other: most interesting mistakes are made there."""
    answer = draw(TEXTS)
    if draw(st.booleans()):
        return answer, draw(TEXTS)
    at = draw(st.integers(0, len(answer)))
    cut = draw(st.integers(0, 1))
    return answer, answer[:at] + draw(EDITS) + answer[at + cut :]


@pytest.mark.parametrize("name", NAIVE)
@settings(max_examples=100, deadline=None)
@given(pair=pairs(), chunk_bytes=st.integers(1, 6))
def test_streaming_equals_naive(name: str, pair: tuple[bytes, bytes], chunk_bytes: int) -> None:
    kind, *flags = name.split()
    answer, output = pair
    comparator = build_comparator(kind, flags)
    expected = NAIVE[name](answer, output)
    said = comparator.compare(io.BytesIO(answer), io.BytesIO(output), chunk_bytes)
    assert said.accepted == expected, said
    assert comparator.compare_bytes(answer, output).accepted == expected
    assert said.accepted or said.message
