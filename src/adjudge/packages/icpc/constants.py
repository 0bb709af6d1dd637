"""Constants of 2025-09: ``{{name}}`` in the files where the format replaces it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from adjudge.packages.files import TEXT_BYTES, PackageFiles

_PLACES = ("input_validators/", "output_validator/", "output_validators/", "include/", "submissions/")
_SEQUENCE = re.compile(rb"\{\{([a-zA-Z_][a-zA-Z0-9_]*(?:\.[a-zA-Z0-9_]+)?)\}\}")


def substitute(files: PackageFiles, constants: Mapping[str, str]) -> None:
    """Replace constants where the format requires it; undefined names are kept."""
    if not constants:
        return
    values = {name.encode(): value.encode() for name, value in constants.items()}
    for path in files.names():
        if not _has_constants(path) or files.size_bytes(path) > TEXT_BYTES:
            continue
        before = files.locate(path).read_bytes()
        after = _SEQUENCE.sub(lambda match: values.get(match[1], match[0]), before)
        if after != before:
            files.put_derived(path, after)


def _has_constants(path: str) -> bool:
    if path.startswith("statement/"):
        return path.endswith(".md")
    if path == "submissions/submissions.yaml":
        return False
    return path.startswith(_PLACES) or path.endswith("/test_group.yaml")
