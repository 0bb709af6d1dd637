"""Normalizers: each removes the differences that one family of comparators ignores."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable

from adjudge.judge.comparators.stream_compare import DeferredBytes, Normalizer

_BLANKS = b" \t\x0b\x0c"
_TESTLIB_WORD = re.compile(rb"[^ \t\r\n]+")
_HELD_CHARS = 16 * 1024

Split = Callable[[bytes], list[bytes]]


def split_testlib(chunk: bytes) -> list[bytes]:
    """Words as testlib reads them: form feed and vertical tab are ordinary characters."""
    if b"\x0b" in chunk or b"\x0c" in chunk:
        return _TESTLIB_WORD.findall(chunk)
    return chunk.split()


class RawBytes(Normalizer):
    """No normalization."""

    def skip(self, chunk: bytes) -> bytes:
        return chunk


class LineEndings(Normalizer):
    """Normalizes line endings only.

    ``lone_cr`` also treats a single carriage return as a line ending; ``final_lf`` terminates an unfinished last line.
    """

    def __init__(self, *, lone_cr: bool, final_lf: bool = False) -> None:
        self._lone_cr, self._final_lf = lone_cr, final_lf
        self.state: tuple[bool, bool] = (False, False)

    def feed(self, chunk: bytes) -> bytes:
        """Hold back a final CR: the LF of its pair may be the first byte of the next chunk."""
        text = b"\r" + chunk if self.state[0] else chunk
        held = text.endswith(b"\r")
        text = text[:-1] if held else text
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
            text = text.replace(b"\r", b"\n") if self._lone_cr else text
        self.state = (held, not text.endswith(b"\n") if text else self.state[1])
        return text

    def skip(self, chunk: bytes) -> bytes:
        return self.feed(chunk)

    def finish(self) -> bytes:
        """Emit the held CR and terminate the last line."""
        held, unfinished = self.state
        rest = (b"\n" if self._lone_cr else b"\r") if held else b""
        if self._final_lf and (not rest.endswith(b"\n") if rest else unfinished):
            rest += b"\n"
        return rest


class LastEmptyLine(Normalizer):
    """Holds back a line feed that ends an empty line; at the end of the stream it is dropped or emitted.

    Requires ``LineEndings`` before it.
    """

    def __init__(self, *, drops: bool) -> None:
        self._drops = drops
        self.state: tuple[bool, bool] = (False, True)
        """Whether a line feed is held back, and whether the next byte starts a line."""

    def feed(self, chunk: bytes) -> bytes:
        """Only the last byte of the stream so far can be held back."""
        held, at_start = self.state
        text = b"\n" + chunk if held else chunk
        holds = chunk.endswith(b"\n\n") or (chunk == b"\n" and at_start)
        self.state = (holds, chunk.endswith(b"\n"))
        return text[:-1] if holds else text

    def finish(self) -> bytes:
        """Emit or drop what was held back."""
        return b"\n" if self.state[0] and not self._drops else b""


class CollapsedSpaces(Normalizer):
    """Words separated by one space each."""

    def __init__(self, split: Split = bytes.split) -> None:
        self._split = split
        self.state: tuple[bool, bool] = (False, False)

    def feed(self, chunk: bytes) -> bytes:
        """Join the words; no space after a word that may continue in the next chunk."""
        words = self._split(chunk)
        started, gap = self.state
        if not words:
            self.state = (started, True)
            return b""
        glue = b" " if started and (gap or not chunk.startswith(words[0])) else b""
        self.state = (True, not chunk.endswith(words[-1]))
        return glue + b" ".join(words)

    def skip(self, chunk: bytes) -> bytes:
        if words := self._split(chunk[-64:]):
            self.state = (True, not chunk.endswith(words[-1]))
            return b""
        return self.feed(chunk)


class CollapsedSpacesPerLine(Normalizer):
    """Words separated by one space, a line feed after every line. Lines end at LF; CR is whitespace."""

    def __init__(self) -> None:
        self.state: tuple[bool, bool, bool] = (False, False, False)

    def feed(self, chunk: bytes) -> bytes:
        """The first piece continues the line of the previous chunk."""
        first, newline, rest = chunk.partition(b"\n")
        if not newline:
            return self._continue(first)
        head = self._continue(first) if first else b""
        lines = [b" ".join(line.split()) for line in rest.split(b"\n")]
        last = rest.rpartition(b"\n")[2]
        self.state = (bool(lines[-1]), last[-1:].isspace(), bool(last))
        return head + b"\n" + b"\n".join(lines)

    def _continue(self, piece: bytes) -> bytes:
        words = piece.split()
        started, gap, _ = self.state
        if not words:
            self.state = (started, True, True)
            return b""
        glue = b" " if started and (gap or piece[:1].isspace()) else b""
        self.state = (True, piece[-1:].isspace(), True)
        return glue + b" ".join(words)

    def finish(self) -> bytes:
        """Terminate an unfinished last line."""
        return b"\n" if self.state[2] else b""


class RightStripped(Normalizer):
    """Lines without trailing whitespace. Every CR and LF ends a line: put ``LineEndings`` before it to fold pairs."""

    def __init__(self, *, final_lf: bool = False) -> None:
        self._final_lf = final_lf
        self.state: tuple[DeferredBytes, bool] = (DeferredBytes(), False)

    def feed(self, chunk: bytes) -> bytes:
        """Hold back whitespace at the end of the chunk: it counts only if something follows on the same line."""
        held, open_line = self.state
        lines = chunk.replace(b"\r", b"\n").split(b"\n")
        bare = [line.rstrip(_BLANKS) for line in lines]
        prefix = held.value() if bare[0] and held else b""
        if len(lines) > 1 or bare[0]:
            held = DeferredBytes()
        if blanks := lines[-1][len(bare[-1]) :]:
            held.add(blanks)
        self.state = (held, bool(lines[-1]) or (open_line and len(lines) == 1))
        return prefix + b"\n".join(bare)

    def finish(self) -> bytes:
        """Trailing whitespace at the end never counts."""
        return b"\n" if self._final_lf and self.state[1] else b""


class DmojWhitespace(Normalizer):
    """Words; a gap with a line ending becomes one line ending, any other gap one space (DMOJ)."""

    def __init__(self) -> None:
        self.state: tuple[bool, bytes] = (False, b"")

    def feed(self, chunk: bytes) -> bytes:
        """Remember the kind of gap at the end of the chunk."""
        text = chunk.replace(b"\r", b"\n")
        started, gap = self.state
        body = text.strip()
        if not body:
            self.state = (started, _wider(gap, text))
            return b""
        lead = text[: len(text) - len(text.lstrip())]
        glue = _wider(gap, lead) if started else b""
        self.state = (True, _wider(b"", text[len(text.rstrip()) :]))
        lines = [b" ".join(line.split()) for line in body.split(b"\n")]
        return glue + b"\n".join(filter(None, lines))


def _wider(gap: bytes, blanks: bytes) -> bytes:
    if gap == b"\n" or b"\n" in blanks:
        return b"\n"
    return b" " if gap or blanks else b""


class Lowercase(Normalizer):
    """ASCII letters in lowercase."""

    def feed(self, chunk: bytes) -> bytes:
        return chunk.lower()

    def skip(self, chunk: bytes) -> bytes:
        return chunk


class TruncatedAtNul(Normalizer):
    """Truncates words at a NUL, as references that compare C strings do; a word of NULs stays one NUL."""

    def __init__(self) -> None:
        self.state: tuple[bool, bool] = (False, False)
        """Whether the current word has been truncated, and whether there is a current word."""

    def feed(self, chunk: bytes) -> bytes:
        """Chunks without NUL, the usual case, are returned unchanged."""
        cut, inside = self.state
        if b"\x00" not in chunk and not cut:
            self.state = (False, not chunk[-1:].isspace())
            return chunk
        pieces = []
        for piece in re.findall(rb"\s+|\S+", chunk):
            if piece.isspace():
                cut = inside = False
                pieces.append(piece)
                continue
            kept, nul, _ = piece.partition(b"\x00")
            pieces.append(b"" if cut else kept or (b"" if inside else b"\x00"))
            cut, inside = cut or bool(nul), True
        self.state = (cut, inside)
        return b"".join(pieces)

    def skip(self, chunk: bytes) -> bytes:
        return self.feed(chunk)


class UnicodeNfc(Normalizer):
    """UTF-8 text in Unicode normalization form C, optionally case-folded; invalid bytes are kept."""

    def __init__(self, *, fold_case: bool = False) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._fold_case = fold_case
        self._held = ""

    @property
    def state(self) -> object:  # type: ignore[override]  # derived here, so that it cannot be out of date
        """The text held back and the incomplete character."""
        return self._held, self._decoder.getstate()

    def feed(self, chunk: bytes) -> bytes:
        """Normalize up to the last character that cannot combine with anything before it."""
        text = self._held + self._decoder.decode(chunk)
        cut = _safe_cut(text)
        self._held = text[cut:]
        return self._normal(text[:cut])

    def finish(self) -> bytes:
        """Normalize what was held back."""
        text, self._held = self._held + self._decoder.decode(b"", final=True), ""
        return self._normal(text)

    def skip(self, chunk: bytes) -> bytes:
        return self.feed(chunk)

    def _normal(self, text: str) -> bytes:
        text = unicodedata.normalize("NFC", text)
        if self._fold_case:
            text = unicodedata.normalize("NFC", text.casefold())
        return text.encode("utf-8", "surrogateescape")


def _safe_cut(text: str) -> int:
    """A position where normalization may be split: an ASCII character combines with nothing before it.

    Text without ASCII is split at any starter once enough is held back, which bounds the memory.
    """
    for index in range(len(text) - 1, max(-1, len(text) - _HELD_CHARS), -1):
        if text[index] < "\x80":
            return index
    for index in range(len(text) - 1, 0, -1) if len(text) > _HELD_CHARS else ():
        char = text[index]
        if (
            not unicodedata.combining(char)
            and not "\u1160" <= char <= "\u11ff"
            and unicodedata.is_normalized("NFC", char)
        ):
            return index
    return 0


class NormalizerChain(Normalizer):
    """Several normalizers in sequence."""

    def __init__(self, *stages: Normalizer) -> None:
        self._stages = stages

    @property
    def state(self) -> object:  # type: ignore[override]  # derived here, so that it cannot be out of date
        return [stage.state for stage in self._stages]

    def feed(self, chunk: bytes) -> bytes:
        """Each stage processes the output of the previous one."""
        for stage in self._stages:
            chunk = stage.feed(chunk) if chunk else b""
        return chunk

    def finish(self) -> bytes:
        """Finish the stages in order; the output of each passes through the later ones."""
        rest = b""
        for stage in self._stages:
            rest = (stage.feed(rest) if rest else b"") + stage.finish()
        return rest

    def skip(self, chunk: bytes) -> bytes:
        for stage in self._stages:
            chunk = stage.skip(chunk) if chunk else b""
        return chunk
