"""Comparison without regard to order, in constant memory.

Each item is hashed with a random key of this comparison and the hashes are added: equal multisets have equal sums, and
without the key nobody can construct a collision.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from adjudge.judge.comparators.comparison import ACCEPTED, Comparison, excerpt, wrong_answer
from adjudge.judge.comparators.normalizers import CollapsedSpacesPerLine
from adjudge.judge.comparators.stream_compare import Normalizer, Reader
from adjudge.judge.comparators.tokens import line_lists

_MODULUS = 2**128
_EXPLAINED_ITEMS = 100_000


def compare_multisets(answer: Iterable[list[bytes]], output: Iterable[list[bytes]], what: str) -> Comparison:
    """Whether both streams contain the same items, equally often."""
    key = secrets.token_bytes(32)
    wanted, found = _MultisetFingerprint(key), _MultisetFingerprint(key)
    wanted.take(answer)
    found.take(output)
    if wanted.count != found.count:
        return wrong_answer(f"expected {wanted.count} {what}, found {found.count}{wanted.example(found)}")
    if wanted.total != found.total:
        return wrong_answer(f"not the same {what}{wanted.example(found)}")
    return ACCEPTED


class _MultisetFingerprint:
    """The fingerprint of a multiset, and its first items for the message."""

    def __init__(self, key: bytes) -> None:
        self._key, self.count, self.total = key, 0, 0
        self._first: Counter[bytes] = Counter()

    def take(self, lists: Iterable[list[bytes]]) -> None:
        key = self._key
        for items in lists:
            if self.count < _EXPLAINED_ITEMS:
                self._first.update(item[:256] for item in items)
            self.count += len(items)
            hashes = [int.from_bytes(blake2b(item, digest_size=16, key=key).digest()) for item in items]
            self.total = (self.total + sum(hashes)) % _MODULUS

    def example(self, found: _MultisetFingerprint) -> str:
        """An example of a missing or additional item, if all items were kept."""
        if max(self.count, found.count) > _EXPLAINED_ITEMS:
            return ""
        for item in self._first - found._first:
            return f": {excerpt(item)} is missing"
        for item in found._first - self._first:
            return f": {excerpt(item)} is not expected"
        return ""


def non_blank_lines(reader: Reader, chunk_bytes: int, normalizer: Normalizer) -> Iterator[list[bytes]]:
    form = CollapsedSpacesPerLine()
    for lines in line_lists(reader, chunk_bytes, normalizer):
        text = form.feed(b"\n".join(lines) + b"\n")
        yield [line for line in text.split(b"\n") if line]


def dmoj_lines(reader: Reader, chunk_bytes: int, normalizer: Normalizer) -> Iterator[list[bytes]]:
    """DMOJ's lines: CR and LF both end a line; empty lines are ignored, whitespace-only lines are not."""
    for lines in line_lists(reader, chunk_bytes, normalizer):
        yield [b" ".join(part.split()) for line in lines for part in line.replace(b"\r", b"\n").split(b"\n") if part]


def compare_letters(answer: Reader, output: Reader, chunk_bytes: int) -> Comparison:
    """DMOJ's ``easy``: the same non-blank characters in any order and case."""
    wanted, found = _letters(answer, chunk_bytes), _letters(output, chunk_bytes)
    return ACCEPTED if wanted == found else wrong_answer("not the same characters")


def _letters(reader: Reader, chunk_bytes: int) -> Counter[int]:
    counts: Counter[int] = Counter()
    while chunk := reader.read(chunk_bytes):
        letters = chunk.lower().translate(None, b" \t\r\n\x0b\x0c")
        for letter in set(letters):
            counts[letter] += letters.count(letter)
    return counts
