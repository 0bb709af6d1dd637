"""Calls to the outside: what the list lets through, how they are signed, what comes of answers."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from adjudge.chains.executor import NodeFailed, NodeResult
from adjudge.domain.errors import InvalidInput, NodeRefused
from adjudge.executors.http import HttpExecutor, NotifyExecutor
from adjudge.services.http_client import (
    GuardedHttpClient,
    HostAllowList,
    OutgoingRequest,
    OutgoingResponse,
    _whither,
)
from adjudge.services.signing import sign_request
from tests.support.dripping import dripping
from tests.support.node_context import context_for
from tests.support.tcp_server import tcp_server


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    names: list[str]


@dataclass
class Host:
    """A server on loopback that answers as a test defines."""

    port: int = 0
    seen: list[Request] = field(default_factory=list)
    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        names = [line.partition(":")[0].lower() for line in head[1:] if line]
        self.seen.append(Request(method, target, headers, body, names))
        status, extra, data = self.answers.get(target, (200, {}, b"fine"))
        if status:
            lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in extra.items()]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
            await writer.drain()
        else:
            await reader.read()  # never answers: until the caller goes away
        writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Host]:
    host = Host()
    async with tcp_server(host.serve) as host.port:
        yield host


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with serving() as host:
        yield host


def outgoing(allow: str, *, resolve: dict[str, list[str]] | None = None, secret: bytes = b"") -> GuardedHttpClient:
    async def look_up(name: str, _port: int) -> list[str]:
        if name not in (resolve or {}):
            raise OSError("no such name")
        return (resolve or {})[name]

    return GuardedHttpClient(HostAllowList.parse(allow), secret, resolve=look_up, now_sec=lambda: 1_700_000_000.5)


async def fetch(out: GuardedHttpClient, url: str, **cfg: Any) -> Any:
    result = await HttpExecutor(out).execute(context_for("http", {"url": url, **cfg}))
    assert isinstance(result, NodeResult)
    return result.artifact


async def test_nothing_may_be_called_by_default(host: Host) -> None:
    with pytest.raises(NodeRefused, match=r"is not in chains\.http_allow"):
        await fetch(outgoing(""), host.url)
    assert host.seen == []


async def test_an_answer_becomes_the_artifact(host: Host) -> None:
    host.answers["/a?b=1"] = (
        200,
        {"Content-Type": "application/json", "ETag": '"x"', "Set-Cookie": "s=1"},
        b'{"n": [1]}',
    )
    found = await fetch(outgoing(host.url), f"{host.url}/a?b=1")
    assert found == {
        "status": 200,
        "url": f"{host.url}/a?b=1",
        "headers": {"content-type": "application/json", "etag": '"x"'},
        "json": {"n": [1]},
    }
    host.answers["/t"] = (200, {"Content-Type": "application/json"}, b"\xff\0 not json")
    assert (await fetch(outgoing(host.url), f"{host.url}/t"))["text"] == "�� not json"


async def test_what_is_sent(host: Host) -> None:
    headers = {"X-Mine": "1", "Host": "elsewhere", "idempotency-key": "forged"}
    await fetch(outgoing(host.url, secret=b"s3"), f"{host.url}/in?q", method="POST", json={"a": 1}, headers=headers)
    (seen,) = host.seen
    assert (seen.method, seen.target, json.loads(seen.body)) == ("POST", "/in?q", {"a": 1})
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["x-mine"] == "1"
    assert seen.headers["host"] == f"127.0.0.1:{host.port}"
    assert seen.headers["idempotency-key"] == "run/node"
    assert seen.headers["adjudge-timestamp"] == "1700000000"
    assert seen.headers["adjudge-signature"] == sign_request(b"s3", "1700000000", "POST", "/in?q", seen.body)
    await fetch(outgoing(host.url), host.url, method="PUT", body="text")
    assert host.seen[1].body == b"text"
    assert "adjudge-signature" not in host.seen[1].headers


async def test_what_is_signed_is_what_is_sent(host: Host) -> None:
    await fetch(outgoing(host.url, secret=b"s3"), f"{host.url}/ä b?q=ü")
    (seen,) = host.seen
    assert seen.target == "/%C3%A4%20b?q=%C3%BC"
    assert seen.headers["adjudge-signature"] == sign_request(b"s3", "1700000000", "GET", seen.target, b"")


async def test_what_a_node_does_not_say_about_itself_is_added(host: Host) -> None:
    """Servers such as api.github.com reject requests without a User-Agent."""
    await fetch(outgoing(host.url), host.url)
    assert host.seen[-1].headers["user-agent"].startswith("adjudge/")
    assert host.seen[-1].headers["accept"] == "*/*"
    await fetch(outgoing(host.url), host.url, headers={"user-agent": "mine", "ACCEPT": "text/plain"})
    assert (host.seen[-1].headers["user-agent"], host.seen[-1].headers["accept"]) == ("mine", "text/plain")


@pytest.mark.parametrize("target", ["/in?", "", "?q=1", "/a b?c=ü#part"])
async def test_signature_is_of_the_target_that_is_sent(host: Host, target: str) -> None:
    forged = {"adjudge-signature": "v1=forged"}
    await fetch(outgoing(host.url, secret=b"s3"), host.url + target, headers=forged)
    (seen,) = host.seen
    assert seen.headers["adjudge-signature"] == sign_request(b"s3", "1700000000", "GET", seen.target, b"")
    assert seen.names.count("adjudge-signature") == 1


async def test_an_answer_is_not_unpacked(host: Host) -> None:
    host.answers["/bomb"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"0" * 10_000_000))
    found = await fetch(outgoing(host.url), f"{host.url}/bomb", max_bytes=20_000)
    assert len(found["text"]) < 20_000
    assert host.seen[0].headers["accept-encoding"] == "identity"


async def test_a_signature_is_of_all_that_matters() -> None:
    variants = {
        sign_request(b"k", "1", "POST", "/x", b"body"),
        sign_request(b"j", "1", "POST", "/x", b"body"),
        sign_request(b"k", "2", "POST", "/x", b"body"),
        sign_request(b"k", "1", "PUT", "/x", b"body"),
        sign_request(b"k", "1", "POST", "/y", b"body"),
        sign_request(b"k", "1", "POST", "/x", b"bodY"),
    }
    assert len(variants) == 6


@pytest.mark.parametrize(
    ("status", "expected", "error"),
    [
        (503, None, NodeFailed),
        (429, None, NodeFailed),
        (404, None, NodeRefused),
        (404, [404], None),
        (200, [204], NodeRefused),
    ],
)
async def test_answers_that_are_not_expected(
    host: Host, status: int, expected: list[int] | None, error: type[Exception] | None
) -> None:
    host.answers["/"] = (status, {}, b"because")
    cfg = {"expect": expected} if expected else {}
    if error is None:
        assert (await fetch(outgoing(host.url), f"{host.url}/", **cfg))["status"] == status
        return
    with pytest.raises(error, match=f"answered {status}: because"):
        await fetch(outgoing(host.url), f"{host.url}/", **cfg)


async def test_the_answer_is_bounded_in_size_and_time(host: Host) -> None:
    host.answers["/big"] = (200, {}, b"x" * 1001)
    host.answers["/never"] = (0, {}, b"")
    with pytest.raises(NodeRefused, match="longer than 1000 bytes"):
        await fetch(outgoing(host.url), f"{host.url}/big", max_bytes=1000)
    with pytest.raises(NodeFailed, match="timed out after 50 ms"):
        await fetch(outgoing(host.url), f"{host.url}/never", timeout_ms=50)


async def test_an_answer_that_comes_byte_by_byte_is_given_up() -> None:
    async with dripping(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n", b"x") as url:
        with pytest.raises(NodeFailed, match="timed out after 300 ms"):
            await fetch(outgoing(url), f"{url}/", timeout_ms=300)


async def test_redirects_stay_within_the_list(host: Host) -> None:
    async with serving() as other:
        host.answers["/on"] = (302, {"Location": "/end"}, b"")
        host.answers["/off"] = (302, {"Location": f"{other.url}/secret"}, b"")
        host.answers["/loop"] = (302, {"Location": "/loop"}, b"")
        host.answers["/keep"] = (307, {"Location": "/end"}, b"")
        assert (await fetch(outgoing(host.url), f"{host.url}/on"))["url"] == f"{host.url}/end"
        with pytest.raises(NodeRefused, match=r"is not in chains\.http_allow"):
            await fetch(outgoing(host.url), f"{host.url}/off")
        assert other.seen == []
        mine = {"Authorization": "Bearer ours", "X-Mine": "1"}
        await fetch(outgoing(f"{host.url}, {other.url}"), f"{host.url}/off", headers=mine)
        (seen,) = other.seen
        assert (seen.headers.get("authorization"), seen.headers.get("x-mine")) == (None, None), "any may hold a secret"
        with pytest.raises(NodeRefused, match="more than 5 redirects"):
            await fetch(outgoing(host.url), f"{host.url}/loop")
        await fetch(outgoing(host.url), f"{host.url}/keep", method="POST", body="b")
        assert (host.seen[-1].method, host.seen[-1].body) == ("POST", b"b")
        host.answers["/carry"] = (307, {"Location": f"{other.url}/end"}, b"")
        with pytest.raises(NodeRefused, match="body on to another host"):
            await fetch(outgoing(f"{host.url}, {other.url}"), f"{host.url}/carry", method="POST", body="b")
        await fetch(outgoing(host.url), f"{host.url}/on", method="POST", body="b")
        assert (host.seen[-1].method, host.seen[-1].body) == ("GET", b"")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "192.168.0.1",
        "::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::10.0.0.1",
        "2002:0a00:0001::1",
        "0.0.0.0",
        "224.0.0.1",
    ],
)
async def test_a_listed_name_may_not_lead_inside(address: str) -> None:
    out = outgoing("inside.example", resolve={"inside.example": [address]})
    with pytest.raises(NodeRefused, match="not a public one"):
        await fetch(out, "https://inside.example/")


async def test_one_inner_address_among_public_ones_is_enough_to_refuse() -> None:
    out = outgoing("mixed.example", resolve={"mixed.example": ["93.184.216.34", "10.0.0.1"]})
    with pytest.raises(NodeRefused, match="not a public one") as refused:
        await fetch(out, "https://mixed.example/")
    assert "10.0.0.1" not in str(refused.value), "addresses of internal names are not revealed"


async def test_a_name_is_called_by_the_address_that_was_looked_at(host: Host) -> None:
    out = outgoing(f"http://box.example:{host.port}, 127.0.0.0/8", resolve={"box.example": ["127.0.0.1"]})
    await fetch(out, f"http://box.example:{host.port}/x")
    assert host.seen[0].headers["host"] == f"box.example:{host.port}"


@pytest.mark.parametrize(
    ("allow", "url", "ok"),
    [
        ("example.org", "https://example.org/", True),
        ("example.org", "https://EXAMPLE.org./", True),
        ("example.org", "http://example.org/", False),
        ("example.org", "https://example.org:8443/", False),
        ("example.org:8443", "https://example.org:8443/", True),
        ("example.org", "https://a.example.org/", False),
        ("*.example.org", "https://a.b.example.org/", True),
        ("*.example.org", "https://example.org/", False),
        ("*.example.org", "https://badexample.org/", False),
        ("example.org", "https://example.org@evil.test/", False),
        ("example.org", "https://evil.test/?example.org", False),
    ],
)
def test_the_list(allow: str, url: str, ok: bool) -> None:
    listed, whither = HostAllowList.parse(allow), _whither(urlsplit(url))
    if ok:
        listed.check(*whither)
    else:
        with pytest.raises(NodeRefused):
            listed.check(*whither)


@pytest.mark.parametrize(
    "text", ["ftp://x", "https://", "10.0.0.1/8", "example.org/path", "https://x/path", "https://x:99999"]
)
def test_a_list_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"chains\.http_allow"):
        HostAllowList.parse(text)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "//x", "file:///etc/passwd", "gopher://x", "nonsense"])
async def test_urls_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="url: "):
        await outgoing("x").call(OutgoingRequest("GET", url))


def test_headers_cannot_break_out() -> None:
    for headers in ({"X": "a\r\nY: b"}, {"X: Y": "a"}, {"": "a"}):
        with pytest.raises(InvalidInput):
            context_for("http", {"url": "https://x", "headers": headers})
    with pytest.raises(InvalidInput):
        context_for("http", {"url": "https://x", "json": 1, "body": "b"})


async def test_what_the_network_fails_at_is_tried_again() -> None:
    with pytest.raises(NodeFailed, match="cannot be found"):
        await fetch(outgoing("gone.example"), "https://gone.example/")
    async with serving() as host:
        allow, url = host.url, host.url
    with pytest.raises(NodeFailed, match="ConnectError"):
        await fetch(outgoing(allow), url)


async def test_notify_says_it_in_the_log_and_to_the_webhook(host: Host) -> None:
    silent = context_for("notify", {"text": "done"})
    assert (await NotifyExecutor(outgoing("")).execute(silent)).artifact == {"text": "done"}
    assert silent.lines == ["done"]
    context = context_for("notify", {"text": "done", "data": {"n": 1}, "url": host.url})
    assert (await NotifyExecutor(outgoing(host.url)).execute(context)).artifact == {"text": "done", "status": 200}
    sent = json.loads(host.seen[0].body)
    assert sent == {"text": "done", "data": {"n": 1}, "chain": "a chain", "run_id": "run", "node_id": "node"}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b'{"a": 1}', {"json": {"a": 1}}),
        (b"{", {"text": "{"}),
        (b'["\\u0000"]', {"text": '["\\u0000"]'}),
        (b'["\\ud800"]', {"text": '["\\ud800"]'}),
        (b"NaN", {"text": "NaN"}),
        (b"[" * 100_000, {"text": "[" * 100_000}),
        (b"[" * 100 + b"]" * 100, {"text": "[" * 100 + "]" * 100}),
    ],
)
def test_an_answer_that_could_not_be_kept_as_json_is_kept_as_text(body: bytes, wanted: dict[str, Any]) -> None:
    found = OutgoingResponse(200, {"content-type": "application/json"}, body, "https://x").document()
    assert {name: found[name] for name in ("json", "text") if name in found} == wanted
