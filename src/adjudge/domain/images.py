"""Recognises pictures by their content: a file name or a declared type may be wrong."""

from __future__ import annotations


def image_type(data: bytes) -> str | None:
    """The media type of a PNG, JPEG or WebP picture; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None
