"""The message for a rejected output: position and content of the first difference.

Only rejected outputs are read a second time, and only their beginning, so accepted outputs stay fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

from adjudge.judge.comparators.comparison import excerpt
from adjudge.judge.comparators.normalizers import Split
from adjudge.judge.comparators.stream_compare import CHUNK_BYTES, Normalizer, Reader, StreamDifference
from adjudge.judge.comparators.tokens import line_lists, token_lists

Key = Callable[[bytes], bytes]
_READ_BYTES = 16 * 1024 * 1024


class _Bounded:
    """The beginning of a stream."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._left = reader, _READ_BYTES

    def read(self, size: int, /) -> bytes:
        piece = self._reader.read(min(size, self._left))
        self._left -= len(piece)
        return piece

    def seek(self, offset: int, /) -> object:
        return self._reader.seek(offset)


def split_lines(chunk: bytes) -> list[bytes]:
    """Lines of a normalized stream."""
    return chunk.split(b"\n")


def first_difference(
    answer: Reader,
    output: Reader,
    normalizer: Callable[[], Normalizer],
    *,
    kind: StreamDifference,
    unit: str,
    split: Split,
    key: Key,
) -> str:
    """Describe the first word or line that differs after ``key`` has normalized it."""
    pairs = zip_longest(_pieces(answer, normalizer(), split), _pieces(output, normalizer(), split))
    for number, (wanted, found) in enumerate(pairs, 1):
        if wanted is None or found is None or key(wanted) != key(found):
            return f"{unit} {number}: {_contrast(wanted, found)}"
    return {
        StreamDifference.EXTRA: "the output continues after the end of the answer",
        StreamDifference.MISSING: "the output ends before the answer does",
    }.get(kind, f"the output differs from the answer in blanks, or after {_READ_BYTES // 2**20} MiB")


def _contrast(wanted: bytes | None, found: bytes | None) -> str:
    if found is None:
        return f"expected {excerpt(wanted or b'')}, found the end of the output"
    if wanted is None:
        return f"expected the end of the output, found {excerpt(found)}"
    at = next((i for i, (one, two) in enumerate(zip(wanted, found, strict=False)) if one != two), 0)
    start = at - 10 if at > 30 else 0
    return f"expected {excerpt(wanted[start:])}, found {excerpt(found[start:])}"


def _pieces(reader: Reader, normalizer: Normalizer, split: Split) -> Iterator[bytes]:
    reader.seek(0)
    bounded = _Bounded(reader)
    if split is split_lines:
        lists = line_lists(bounded, CHUNK_BYTES, normalizer)
    else:
        lists = token_lists(bounded, split, CHUNK_BYTES, normalizer)
    return (token for tokens in lists for token in tokens)
