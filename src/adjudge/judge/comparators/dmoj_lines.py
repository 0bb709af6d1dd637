"""DMOJ's line-based comparators: numbers within lines, and points per line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import zip_longest

from adjudge.judge.comparators.comparison import ACCEPTED, Comparison, ComparisonStatus, excerpt, wrong_answer
from adjudge.judge.comparators.numbers import python_float
from adjudge.judge.comparators.stream_compare import DeferredBytes, Reader

Close = Callable[[float, float], bool]


def raw_lines(reader: Reader, chunk_bytes: int) -> Iterator[bytes]:
    """Non-empty lines, ended by CR or LF; a line longer than a limit is replaced by its digest."""
    held = DeferredBytes()
    while chunk := reader.read(chunk_bytes):
        first, *rest = chunk.replace(b"\r", b"\n").split(b"\n")
        held.add(first)
        if not rest:
            continue
        if held:
            yield held.value()
        yield from filter(None, rest[:-1])
        held = DeferredBytes()
        held.add(rest[-1])
    if held:
        yield held.value()


def compare_float_lines(answer: Iterator[bytes], output: Iterator[bytes], close: Close) -> Comparison:
    """Same number of lines and words; words that are numbers in the answer by tolerance, all others by their bytes."""
    for number, (wanted, found) in enumerate(zip_longest(answer, output), 1):
        if wanted is None or found is None:
            return wrong_answer(
                f"line {number}: the output has {'fewer' if found is None else 'more'} lines than the answer"
            )
        words, others = wanted.split(), found.split()
        if len(words) != len(others):
            return wrong_answer(f"line {number}: expected {len(words)} words, found {len(others)}")
        for word, other in zip(words, others, strict=True):
            if not _same(word, other, close):
                return wrong_answer(f"line {number}: expected {excerpt(word)}, found {excerpt(other)}")
    return ACCEPTED


def _same(word: bytes, other: bytes, close: Close) -> bool:
    number = python_float(word)
    if number is None:
        return word == other
    found = python_float(other)
    return found is not None and close(number, found)


def count_lines(answer: Iterator[bytes], output: Iterator[bytes]) -> Comparison:
    """Partial points for each correct line; more lines than expected earn nothing."""
    right = lines = 0
    first_wrong = 0
    for number, (wanted, found) in enumerate(zip_longest(answer, output), 1):
        if wanted is None:
            return Comparison(ComparisonStatus.WRONG_ANSWER, "the output has more lines than the answer", Fraction(0))
        lines = number
        if found is not None and wanted.strip() == found.strip():
            right += 1
        else:
            first_wrong = first_wrong or number
    if right == lines:
        return ACCEPTED
    message = f"{right} of {lines} lines are right; line {first_wrong} is the first that is not"
    return Comparison(ComparisonStatus.WRONG_ANSWER, message, Fraction(right, lines))
