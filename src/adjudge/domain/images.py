"""Recognises pictures by their content: a file name or a declared type may be wrong."""

from __future__ import annotations

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of segments that begin with the size of the picture."""


def image_type(data: bytes) -> str | None:
    """The media type of a PNG, JPEG or WebP picture; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of a picture; None if it is damaged, or anything else."""
    kind = image_type(data)
    found = None
    if kind == "image/png":
        found = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    elif kind == "image/jpeg":
        found = _jpeg_size(data)
    elif kind == "image/webp":
        found = _webp_size(data)
    return found if found is not None and min(found) > 0 else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """From the first frame; other segments are skipped by their length."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        if data[at + 1] in _JPEG_FRAMES:
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4]))
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """From the first chunk, of one of the three kinds."""
    kind = data[12:16]
    if kind == b"VP8 ":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None
