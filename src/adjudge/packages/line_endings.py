"""Line endings and encodings of test data: checked or normalized in chunks."""

from __future__ import annotations

import codecs

from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import Findings


def normalize_line_endings(files: PackageFiles, path: str, findings: Findings, *, final_newline: bool = False) -> bool:
    """Convert CRLF to LF (with ``final_newline`` also add a missing last LF) in a derived copy, and report it.

    Returns whether there was a CRLF.
    """
    line = first_carriage_return(files, path)
    lacks_end = final_newline and lacks_final_newline(files, path)
    if not line and not lacks_end:
        return False
    target = files.new_derived_path()
    held = b""
    with target.open("wb") as out:
        for chunk in files.chunks(path):
            data = held + chunk
            held = b"\r" if data.endswith(b"\r") else b""
            out.write(data[: len(data) - len(held)].replace(b"\r\n", b"\n"))
        out.write(held)
        if lacks_end:
            out.write(b"\n")
    files.put(path, target)
    if line:
        findings.info(path, "has Windows line endings, which were converted.", line=line)
    return bool(line)


def first_carriage_return(files: PackageFiles, path: str) -> int:
    """The first line that ends in CRLF; 0 if none."""
    line, held = 1, False
    for chunk in files.chunks(path):
        if held and chunk.startswith(b"\n"):
            return line
        at = chunk.find(b"\r\n")
        if at >= 0:
            return line + chunk.count(b"\n", 0, at)
        line += chunk.count(b"\n")
        held = chunk.endswith(b"\r")
    return 0


def lacks_final_newline(files: PackageFiles, path: str) -> bool:
    """Whether a non-empty file ends without LF."""
    size = files.size_bytes(path)
    if not size:
        return False
    with files.locate(path).open("rb") as stream:
        stream.seek(size - 1)
        return stream.read(1) != b"\n"


def check_line_endings(files: PackageFiles, path: str, findings: Findings) -> None:
    """Report unusual line endings or encodings of test data; nothing is changed."""
    if line := first_carriage_return(files, path):
        findings.warning(path, "has Windows line endings.", "Convert it to LF, or programs will read a CR.", line)
    if files.head(path, 3) == codecs.BOM_UTF8:
        findings.warning(path, "begins with a byte-order mark.", "Remove it, or programs will read it.", 1)
    if lacks_final_newline(files, path):
        findings.warning(path, "does not end with a newline.", "Add one.")
    if line := _first_undecodable(files, path):
        findings.warning(path, "is not UTF-8.", "Save it as UTF-8.", line)


def _first_undecodable(files: PackageFiles, path: str) -> int:
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    for chunk in files.chunks(path):
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            return line + chunk.count(b"\n", 0, error.start)
        line += chunk.count(b"\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return line
    return 0
