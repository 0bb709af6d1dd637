"""What a client may send before anybody knows who it is, over real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.http_server import RunningServer, serve

PATIENCE_SEC = 60
FLOOD_BYTES = 64 * 1024**2
"""Far more than socket buffers hold: who could send it all was read into memory."""
HOST = b"Host: adjudge\r\n"


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[RunningServer]:
    with serve(sqlite_url, tmp_path, {"accounts.registration": "open"}) as server:
        yield server


@pytest.fixture
def hasty(sqlite_url: str, tmp_path: Path) -> Iterator[RunningServer]:
    """A server that waits for headers only briefly."""
    with serve(sqlite_url, tmp_path, {"server.head_timeout_sec": 0.3}) as server:
        yield server


def connected(server: RunningServer) -> socket.socket:
    address = urlsplit(server.url)
    assert address.hostname is not None
    return socket.create_connection((address.hostname, address.port or 80), timeout=PATIENCE_SEC)


def rest(connection: socket.socket) -> bytes:
    """Everything until the server ends the connection."""
    pieces = []
    try:
        while piece := connection.recv(65_536):
            pieces.append(piece)
    except ConnectionError:
        pass  # it ended before it had read all that was sent
    return b"".join(pieces)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def flooded(server: RunningServer, begin: bytes, piece: bytes) -> int:
    """Begin a request and go on sending until the server ends it; how much could be sent."""
    sent = 0
    with connected(server) as connection:
        try:
            connection.sendall(begin)
            while sent < FLOOD_BYTES:
                connection.sendall(piece)
                sent += len(piece)
        except ConnectionError:
            return sent
    return sent


PIECE = b"a" * 65_536
FLOODS: dict[str, tuple[bytes, bytes]] = {
    "one header without end": (b"GET /api/v1/version HTTP/1.1\r\n" + HOST + b"X-Long: ", PIECE),
    "one header's name without end": (b"GET /api/v1/version HTTP/1.1\r\n" + HOST, PIECE),
    "headers without end": (b"GET /api/v1/version HTTP/1.1\r\n" + HOST, b"X-One: " + b"a" * 4_000 + b"\r\n"),
    "an address without end": (b"GET /api/v1/", PIECE),
    "a trailer without end": (
        b"POST /api/v1/login HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Long: ",
        PIECE,
    ),
    "a body without end": (
        b"POST /api/v1/login HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n",
        b"10000\r\n" + PIECE + b"\r\n",
    ),
}


@pytest.mark.slow
def test_flood_ends_before_it_fills_the_memory(server: RunningServer) -> None:
    sent = {name: flooded(server, *flood) for name, flood in FLOODS.items()}
    assert {name: size for name, size in sent.items() if size >= FLOOD_BYTES} == {}
    assert httpx.get(f"{server.url}/api/v1/version", timeout=PATIENCE_SEC).status_code == 200


def asked(server: RunningServer, request: bytes) -> bytes:
    with connected(server) as connection:
        connection.sendall(request)
        return rest(connection)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"GET /api/v1/version?" + b"a" * 17_000 + b" HTTP/1.1\r\n" + HOST, 414),
        (b"GET /api/v1/version HTTP/1.1\r\n" + HOST + b"X-Long: " + b"a" * 70_000 + b"\r\n", 431),
        (b"GET /api/v1/version HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: a\r\n" % i for i in range(101)), 431),
        (b"GET /api/v1/version HTTP/1.1\r\n" + HOST + b"X-Fits: " + b"a" * 60_000 + b"\r\n", 200),
        (b"GET /api/v1/version?" + b"a" * 16_000 + b" HTTP/1.1\r\n" + HOST, 200),
        (b"NONSENSE\r\n", 400),
    ],
    ids=["long address", "long header", "many headers", "allowed header", "allowed address", "no HTTP"],
)
def test_head_past_its_limit_is_refused(server: RunningServer, head: bytes, expected: int) -> None:
    answer = asked(server, head + b"Connection: close\r\n\r\n")
    assert status(answer) == expected
    body = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert body.get("status", 200) == expected, "a refusal is a problem like any other"


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET /api/v1/ver", b"GET /api/v1/version HTTP/1.1\r\nHost: adj"],
    ids=["nothing", "half an address", "half a header"],
)
def test_client_that_does_not_finish_its_headers_is_disconnected(hasty: RunningServer, begun: bytes) -> None:
    with connected(hasty) as connection:
        connection.sendall(begun)
        assert status(rest(connection)) == 408


def test_body_after_its_refusal_does_not_hold_the_connection(hasty: RunningServer) -> None:
    with connected(hasty) as connection:
        head = b"POST /api/v1/login HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n"
        connection.sendall(head)
        assert status(connection.recv(65_536)) == 413
        connection.sendall(b"a")
        rest(connection)


def test_requests_one_after_the_other_share_a_connection(server: RunningServer) -> None:
    request = b"GET /api/v1/version HTTP/1.1\r\n" + HOST + b"X-Long: " + b"a" * 50_000 + b"\r\n"
    answers = asked(server, (request + b"\r\n") * 3 + request + b"Connection: close\r\n\r\n")
    assert answers.count(b"HTTP/1.1 200 OK") == 4


def unknown_keys(count: int) -> bytes:
    return json.dumps({f"k{i}": 1 for i in range(count)}).encode()


@pytest.mark.slow
def test_unknown_client_cannot_make_the_server_read_a_large_body(server: RunningServer) -> None:
    body = unknown_keys(700_000)
    for path in ("login", "register", "submissions", "executions", "problems:import"):
        headers = {"Content-Type": "application/json"}
        answer = httpx.post(f"{server.url}/api/v1/{path}", content=body, headers=headers, timeout=PATIENCE_SEC)
        assert (answer.status_code, answer.json()["code"]) == (413, "BODY_TOO_LARGE"), path
        assert len(answer.content) < 2_000
