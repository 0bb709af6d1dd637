"""Large documents are compressed for clients that accept it, and revalidated by the same ETag."""

from __future__ import annotations

import gzip

import pytest
from starlette.requests import Request

from adjudge.api.responses import packed_response
from adjudge.cache.entry import CachedValue

LARGE = CachedValue(b'{"rows":[' + b"0," * 5_000 + b"0]}", '"abc"')
SMALL = CachedValue(b"{}", '"abc"')


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw})


def test_large_document_is_compressed_where_accepted() -> None:
    response = packed_response(request(accept_encoding="gzip, br"), LARGE)
    assert gzip.decompress(bytes(response.body)) == LARGE.body
    assert (response.headers["content-encoding"], response.headers["etag"]) == ("gzip", 'W/"abc"')
    assert "Accept-Encoding" in response.headers["vary"]


@pytest.mark.parametrize(("found", "headers"), [(LARGE, {}), (SMALL, {"accept_encoding": "gzip"})])
def test_other_documents_are_sent_as_they_are(found: CachedValue, headers: dict[str, str]) -> None:
    response = packed_response(request(**headers), found)
    assert (response.body, response.headers.get("content-encoding")) == (found.body, None)


@pytest.mark.parametrize("known", ['"abc"', 'W/"abc"'])
def test_client_that_has_it_gets_no_body(known: str) -> None:
    response = packed_response(request(accept_encoding="gzip", if_none_match=known), LARGE)
    assert (response.status_code, response.body) == (304, b"")
