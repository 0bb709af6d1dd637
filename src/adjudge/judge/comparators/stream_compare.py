"""Compares two byte streams of any size in constant memory, independent of their chunks.

Most comparators compare *normalized* streams for equality. A ``Normalizer`` turns raw chunks into normalized bytes with
a few bits of state, so a token of a gigabyte needs no more memory than one of a byte, and chunks that are identical on
both sides while both states are equal need no normalization.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import blake2b
from typing import Protocol

CHUNK_BYTES = 256 * 1024
BOM = b"\xef\xbb\xbf"
_HELD_BYTES = 64 * 1024
_SUFFIX_BYTES = 256


class Reader(Protocol):
    """A binary file, as far as comparators need it."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; empty at the end."""
        ...

    def seek(self, offset: int, /) -> object:
        """Seek back, for the second reading that makes a message."""
        ...


class StreamDifference(StrEnum):
    """How two normalized streams differ."""

    DIFFERENT = "different"
    EXTRA = "extra"
    MISSING = "missing"


class Normalizer:
    """Raw chunks in, normalized bytes out. Subclasses keep their whole state in ``state``."""

    state: object = None

    def feed(self, chunk: bytes) -> bytes:
        """The normalized bytes that are certain after ``chunk``."""
        return chunk

    def finish(self) -> bytes:
        """The bytes added at the end of the stream."""
        return b""

    def skip(self, chunk: bytes) -> bytes:
        """Update the state for a chunk whose normalized form is not needed; return what a later stage must skip.

        A suffix that contains a non-blank leaves the same state as the whole chunk.
        """
        suffix = chunk[-_SUFFIX_BYTES:]
        return self.feed(chunk if suffix.isspace() else suffix)


class DeferredBytes:
    """Bytes held back until it is known whether they count; beyond a limit only their digest is kept.

    Equal sequences give equal values and different ones different values, however they were split into chunks; a
    comparison needs nothing more.
    """

    __slots__ = ("_digest", "_kept", "_size")

    def __init__(self) -> None:
        self._kept, self._digest, self._size = b"", blake2b(digest_size=16), 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        self._digest.update(piece)
        if self._size <= _HELD_BYTES:
            self._kept += piece
        else:
            self._kept = self._kept[:_SUFFIX_BYTES]

    def __bool__(self) -> bool:
        return self._size > 0

    def value(self) -> bytes:
        """The bytes, or the digest of a long sequence."""
        if self._size <= _HELD_BYTES:
            return self._kept
        return self._kept[:_SUFFIX_BYTES] + b"\x00%d\x00" % self._size + self._digest.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeferredBytes) and self.value() == other.value()

    __hash__ = None  # type: ignore[assignment]  # it changes while it grows, so it is no key


class _NormalizedStream:
    """One stream with its normalizer and the normalized bytes not matched yet."""

    def __init__(self, reader: Reader, normalizer: Normalizer, chunk_bytes: int) -> None:
        self.reader, self.normalizer, self.chunk_bytes = reader, normalizer, chunk_bytes
        self.pending, self.ended = b"", False

    def advance(self, chunk: bytes | None = None) -> None:
        """Normalize one more chunk; an empty one is the end."""
        chunk = self.reader.read(self.chunk_bytes) if chunk is None else chunk
        if chunk:
            self.pending = self.normalizer.feed(chunk)
        else:
            self.pending, self.ended = self.normalizer.finish(), True

    @property
    def hungry(self) -> bool:
        return not self.pending and not self.ended

    def only(self, allowed: bytes) -> bool:
        """Whether the rest consists of ``allowed`` bytes only."""
        while True:
            if self.pending.strip(allowed) if allowed else self.pending:
                return False
            if self.ended:
                return True
            self.advance()


def compare_streams(
    answer: tuple[Reader, Normalizer],
    output: tuple[Reader, Normalizer],
    *,
    answer_tail: bytes = b"",
    output_tail: bytes = b"",
    chunk_bytes: int = CHUNK_BYTES,
) -> StreamDifference | None:
    """Compare normalized streams; after the end of one, the other may only have the bytes of its tail."""
    left, right = _NormalizedStream(*answer, chunk_bytes), _NormalizedStream(*output, chunk_bytes)
    while True:
        _refill(left, right)
        common = min(len(left.pending), len(right.pending))
        if common:
            if left.pending[:common] != right.pending[:common]:
                return StreamDifference.DIFFERENT
            left.pending, right.pending = left.pending[common:], right.pending[common:]
        elif left.ended and not left.pending:
            return None if right.only(output_tail) else StreamDifference.EXTRA
        elif right.ended and not right.pending:
            return None if left.only(answer_tail) else StreamDifference.MISSING


def _refill(left: _NormalizedStream, right: _NormalizedStream) -> None:
    """Read only where nothing is pending, so that neither side runs ahead of the other."""
    while left.hungry and right.hungry:
        one, two = left.reader.read(left.chunk_bytes), right.reader.read(right.chunk_bytes)
        if one and one == two and left.normalizer.state == right.normalizer.state:
            left.normalizer.skip(one)
            right.normalizer.skip(two)
        else:
            left.advance(one)
            right.advance(two)
    if left.hungry:
        left.advance()
    if right.hungry:
        right.advance()


def skip_bom(reader: Reader) -> None:
    """Skip a byte order mark."""
    head = b""
    while len(head) < len(BOM) and (piece := reader.read(len(BOM) - len(head))):
        head += piece
    reader.seek(len(BOM) if head == BOM else 0)
