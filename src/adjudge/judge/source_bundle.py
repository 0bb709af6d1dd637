"""Several submitted files and their entry point as one JSON document, which is stored like the text of a single source.

Equal submissions have equal documents: files are sorted by name and keys have a fixed order. Files that are text stay
readable; others are Base64.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

from adjudge.domain.errors import InvalidInput
from adjudge.judge.sources import ProgramSource, SourceFile

_VERSION: Final = 1
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Control characters that a JSON string would need six characters for."""


def encode_bundle(source: ProgramSource) -> bytes:
    """The document of several files."""
    files = [_encode_file(file) for file in sorted(source.files, key=lambda file: file.name)]
    document = {"version": _VERSION, "entry_point": source.entry_point, "files": files}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _encode_file(file: SourceFile) -> dict[str, str]:
    if _CONTROL.search(file.data) is None:
        try:
            return {"name": file.name, "text": file.data.decode()}
        except UnicodeDecodeError:
            pass
    return {"name": file.name, "base64": base64.b64encode(file.data).decode()}


def decode_bundle(data: bytes) -> ProgramSource:
    """Read the document of several files."""
    try:
        document = json.loads(data)
        files = tuple(_decode_file(entry) for entry in document["files"])
        if document["version"] != _VERSION or not files:
            raise ValueError("unknown version or no files")
        return ProgramSource(files, document["entry_point"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"source: not a document of several files: {error}.", field="source") from error


def _decode_file(entry: dict[str, Any]) -> SourceFile:
    data = base64.b64decode(entry["base64"], validate=True) if "base64" in entry else entry["text"].encode()
    return SourceFile(entry["name"], data)
