"""The document of several submitted files."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.domain.errors import InvalidInput
from adjudge.judge.source_bundle import decode_bundle, encode_bundle
from adjudge.judge.sources import ProgramSource, SourceFile

FILES = st.dictionaries(st.text("ab/.é", min_size=1), st.binary(), min_size=1)


@given(FILES, st.text("aA.é"))
def test_round_trip(files: dict[str, bytes], entry_point: str) -> None:
    source = ProgramSource(tuple(SourceFile(*item) for item in sorted(files.items())), entry_point)
    assert decode_bundle(encode_bundle(source)) == source


@given(FILES)
def test_order_of_files_does_not_matter(files: dict[str, bytes]) -> None:
    entries = [SourceFile(*item) for item in files.items()]
    assert encode_bundle(ProgramSource(tuple(entries))) == encode_bundle(ProgramSource(tuple(reversed(entries))))


def test_text_stays_readable_and_has_no_nul() -> None:
    source = ProgramSource((SourceFile("a.py", "é\n".encode()), SourceFile("b.bin", b"\0")))
    document = json.loads(encode_bundle(source))
    assert document["files"] == [{"name": "a.py", "text": "é\n"}, {"name": "b.bin", "base64": "AA=="}]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"version":2,"entry_point":"","files":[]}', b'{"files":[1]}'])
def test_other_documents_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="source"):
        decode_bundle(data)
