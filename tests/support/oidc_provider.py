"""A small OpenID provider on loopback: discovery, authorisation with PKCE, tokens signed by a key of its own."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

CLIENT_ID = "adjudge-tests"
CLIENT_SECRET = "only-for-tests"


class FakeOidcProvider:
    """Authenticates every request as ``subject``; tests change its claims and its signing key."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.key = ECKey.generate_key("P-256", {"kid": "first"})
        self.published = self.key
        self.subject = "subject-1"
        self.claims: dict[str, object] = {"preferred_username": "ada", "name": "Ada L."}
        self._codes: dict[str, dict[str, str]] = {}

    def authorize(self, query: dict[str, str]) -> str:
        """Approve; return the redirect URL with the code."""
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Exchange a code, once, if the verifier and the secret are right."""
        asked = self._codes.pop(form.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        if (
            asked is None
            or authorization != f"Basic {basic}"
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != form["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": self.subject, "aud": CLIENT_ID, "iat": now, "exp": now + 60}
        claims |= {"nonce": asked["nonce"]} | self.claims
        header = {"alg": "ES256", "kid": self.key.kid}
        return 200, {"id_token": jwt.encode(header, claims, self.key), "token_type": "Bearer", "access_token": "x"}

    def document(self, path: str) -> dict[str, Any]:
        """The discovery document and the keys."""
        if path == "/keys":
            return dict(KeySet([self.published]).as_dict(private=False))
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }


@contextmanager
def running_provider() -> Iterator[FakeOidcProvider]:
    """Run a provider within the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    provider = server.provider = FakeOidcProvider(server.server_address[1])  # type: ignore[attr-defined]  # the handler's
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # http.server's name
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            self.send_response(302)
            self.send_header("Location", self._provider.authorize(_flat(parts.query)))
            self.end_headers()
        else:
            self._send(200, self._provider.document(parts.path))

    def do_POST(self) -> None:  # http.server's name
        form = _flat(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._send(*self._provider.token(form, self.headers.get("Authorization", "")))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # http.server's name
        """Do not log requests."""

    @property
    def _provider(self) -> FakeOidcProvider:
        provider: FakeOidcProvider = self.server.provider  # type: ignore[attr-defined]  # set by running_provider
        return provider

    def _send(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _flat(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
