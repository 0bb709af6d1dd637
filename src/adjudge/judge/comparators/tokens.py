"""Compares word by word where a word is more than its bytes: numbers, yes and no."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from adjudge.judge.comparators.comparison import ACCEPTED, Comparison, ComparisonStatus, excerpt, wrong_answer
from adjudge.judge.comparators.normalizers import Split
from adjudge.judge.comparators.stream_compare import DeferredBytes, Normalizer, Reader

_PIECES = re.compile(rb"\s+|\S+")

CheckToken = Callable[[bytes, bytes], Comparison | None]
"""``(wanted, found)`` → None if they agree."""


def split_spaced(chunk: bytes) -> list[bytes]:
    """Words and the whitespace between them."""
    return _PIECES.findall(chunk)


def token_lists(
    reader: Reader, split: Split, chunk_bytes: int, normalizer: Normalizer | None = None
) -> Iterator[list[bytes]]:
    """The tokens of a stream, one list per chunk; a token longer than a limit is replaced by its digest."""
    held = DeferredBytes()
    form = normalizer or Normalizer()
    ended = False
    while not ended:
        raw = reader.read(chunk_bytes)
        ended = not raw
        chunk = form.feed(raw) if raw else form.finish()
        tokens = split(chunk)
        if held and chunk:
            # The held bytes are a complete token unless the chunk continues with the same kind of byte.
            if tokens and _continues(held, chunk, tokens[0]):
                held.add(tokens.pop(0))
                if not tokens and chunk[-1:].isspace() == held.value()[:1].isspace():
                    continue
            tokens.insert(0, held.value())
            held = DeferredBytes()
        if tokens and chunk.endswith(tokens[-1]):
            held.add(tokens.pop())
        if tokens:
            yield tokens
    if held:
        yield [held.value()]


def line_lists(reader: Reader, chunk_bytes: int, normalizer: Normalizer) -> Iterator[list[bytes]]:
    """The lines of a normalized stream, one list per chunk."""
    rest = b""
    ended = False
    while not ended:
        chunk = reader.read(chunk_bytes)
        ended = not chunk
        *lines, rest = (rest + (normalizer.feed(chunk) if chunk else normalizer.finish())).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _continues(held: DeferredBytes, chunk: bytes, first: bytes) -> bool:
    return chunk.startswith(first) and first[:1].isspace() == held.value()[:1].isspace()


@dataclass(frozen=True, slots=True)
class TokenRule:
    """How two sequences of tokens are compared."""

    check: CheckToken
    split: Split = bytes.split
    reflexive: bool = True
    """Whether equal bytes always agree, so that runs of equal tokens need no check."""
    extra: ComparisonStatus = ComparisonStatus.WRONG_ANSWER
    missing: ComparisonStatus = ComparisonStatus.WRONG_ANSWER
    token_count: int | None = None
    """Number of tokens that count, if only the first ones do; an answer with fewer is a jury error."""


def compare_tokens(answer: Iterator[list[bytes]], output: Iterator[list[bytes]], rule: TokenRule) -> Comparison:
    """Compare both sequences, one list at a time."""
    wanted: list[bytes] = []
    found: list[bytes] = []
    index = 0
    while rule.token_count is None or index < rule.token_count:
        wanted = wanted or next(answer, [])
        found = found or next(output, [])
        common = min(len(wanted), len(found))
        if not common:
            break
        if rule.token_count is not None:
            common = min(common, rule.token_count - index)
        if not rule.reflexive or wanted[:common] != found[:common]:
            for offset in range(common):
                if (said := rule.check(wanted[offset], found[offset])) is not None:
                    return Comparison(said.status, f"token {index + offset + 1}: {said.message}")
        wanted, found, index = wanted[common:], found[common:], index + common
    return _ends(wanted, found or next(output, []), index, rule)


def _ends(wanted: list[bytes], found: list[bytes], index: int, rule: TokenRule) -> Comparison:
    if wanted and (rule.token_count is None or index < rule.token_count):
        if (said := rule.check(wanted[0], wanted[0])) is not None and said.status is ComparisonStatus.JURY_ERROR:
            return said
        return Comparison(rule.missing, f"the output ends after {index} tokens; expected {excerpt(wanted[0])} next")
    if rule.token_count is not None and index < rule.token_count:
        return Comparison(ComparisonStatus.JURY_ERROR, f"the answer has {index} tokens where {rule.token_count} belong")
    if found:
        # A sequence checker also parses additional tokens: an invalid one is a format error.
        said = rule.check(found[0], found[0])
        outcome = ComparisonStatus.FORMAT_ERROR if said is not None else rule.extra
        return Comparison(outcome, f"the output continues after the last expected token: {excerpt(found[0])}")
    return ACCEPTED


def same_text(wanted: bytes, found: bytes) -> Comparison | None:
    return None if wanted == found else wrong_answer(f"expected {excerpt(wanted)}, found {excerpt(found)}")


def same_text_any_case(wanted: bytes, found: bytes) -> Comparison | None:
    """Compare, ignoring the case of ASCII letters."""
    return (
        None if wanted.lower() == found.lower() else wrong_answer(f"expected {excerpt(wanted)}, found {excerpt(found)}")
    )


def numbers_close_or(
    read: Callable[[bytes], float | None], close: Callable[[float, float], bool], otherwise: CheckToken
) -> CheckToken:
    """Compare by tolerance where the answer has a number, otherwise by ``otherwise``.

    Equal bytes agree without parsing: a number out of range is still equal to itself.
    """

    def check(wanted: bytes, found: bytes) -> Comparison | None:
        if wanted == found:
            return None
        number = read(wanted)
        if number is None:
            return otherwise(wanted, found)
        other = read(found)
        if other is None:
            return wrong_answer(f"expected the number {excerpt(wanted)}, found {excerpt(found)}")
        if close(number, other):
            return None
        return wrong_answer(f"expected {excerpt(wanted)}, found {excerpt(found)}, off by {abs(number - other):.6g}")

    return check


def strict_values(
    read: Callable[[bytes], object | None], same: Callable[[object, object], bool], what: str
) -> CheckToken:
    """Values of one form: an invalid one in the answer is a jury error, in the output a format error."""

    def check(wanted: bytes, found: bytes) -> Comparison | None:
        value = read(wanted)
        if value is None:
            return Comparison(ComparisonStatus.JURY_ERROR, f"the answer has {excerpt(wanted)} where {what} belongs")
        other = read(found)
        if other is None:
            return Comparison(ComparisonStatus.FORMAT_ERROR, f"expected {what}, found {excerpt(found)}")
        return None if same(value, other) else wrong_answer(f"expected {excerpt(wanted)}, found {excerpt(found)}")

    return check
