"""Login with an identity provider: OpenID Connect, authorization code flow with PKCE.

The browser is redirected with a state, a nonce and a code challenge; the values to verify them are kept in a cookie.
When the browser returns with a code, the server fetches the id token and accepts it only if it is signed with a
published key of the provider, for this client, recently, with the same nonce. Issuer and subject identify a user; names
and email addresses are only displayed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from adjudge.domain.errors import LoginFailed, Unavailable
from adjudge.observe.logs import get_logger

_ALGORITHMS: Final = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]
"""Asymmetric signatures only: everyone who knows a shared secret could sign tokens."""
_CACHE_SEC: Final = 3_600.0
_TIMEOUT_SEC: Final = 10.0
"""Limit for a whole response of the provider."""
_LEEWAY_SEC: Final = 60

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExternalIdentity:
    """A user as an identity provider names them: issuer and subject identify, the names are only shown."""

    issuer: str
    subject: str
    name: str = ""
    display_name: str | None = None


@dataclass(frozen=True, slots=True)
class OidcLoginStart:
    """A started login: the URL for the browser, and the value of its cookie."""

    url: str
    cookie: str


class OidcProvider:
    """One identity provider, discovered by its issuer."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        timeout_sec: float = _TIMEOUT_SEC,
    ) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._client_secret = client_secret
        self._clock = clock
        self._timeout_sec = timeout_sec
        self._about: dict[str, Any] = {}
        self._keys: KeySet | None = None
        self._fetched_at = float("-inf")

    async def start_login(self, redirect_uri: str) -> OidcLoginStart:
        about = await self._discover()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint = str(about["authorization_endpoint"])
        joint = "&" if "?" in endpoint else "?"
        return OidcLoginStart(f"{endpoint}{joint}{urlencode(query)}", f"{state}.{nonce}.{verifier}")

    async def complete_login(self, *, code: str, state: str, cookie: str, redirect_uri: str) -> ExternalIdentity:
        """Verify the callback and return the identity."""
        kept_state, _, rest = cookie.partition(".")
        nonce, _, verifier = rest.partition(".")
        if not verifier or not hmac.compare_digest(kept_state.encode(), state.encode()):
            raise LoginFailed("Login expired or started in another browser: start again.")
        about = await self._discover()
        token = await self._exchange(about, code, verifier, redirect_uri)
        claims = await self._validate_id_token(about, token, nonce)
        name = claims.get("preferred_username") or claims.get("nickname") or claims.get("email") or ""
        return ExternalIdentity(self._issuer, str(claims["sub"]), str(name), str(claims.get("name") or "") or None)

    async def _exchange(self, about: dict[str, Any], code: str, verifier: str, redirect_uri: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": self._client_id,
        }
        methods = about.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        auth = None
        if self._client_secret and "client_secret_basic" in methods:
            auth = httpx.BasicAuth(self._client_id, self._client_secret)
        elif self._client_secret:
            form["client_secret"] = self._client_secret
        answer = await self._request("POST", str(about["token_endpoint"]), data=form, auth=auth)
        if answer.status_code >= 400:
            log.info("oidc_login_refused", status=answer.status_code)
            raise LoginFailed("The identity provider rejected the login: start again.")
        token = _json(answer).get("id_token")
        if not isinstance(token, str):
            raise LoginFailed("The identity provider sent no ID token.")
        return token

    async def _validate_id_token(self, about: dict[str, Any], token: str, nonce: str) -> dict[str, Any]:
        """Validate the signature and all required claims of an id token."""
        claims = _verify_signature(token, await self._key_set(about, anew=False))
        if claims is None:  # the provider may have changed its keys: fetch them once more
            claims = _verify_signature(token, await self._key_set(about, anew=True))
        if claims is None:
            log.warning("oidc_token_refused")
            raise LoginFailed("The ID token is invalid.")
        wanted = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_SEC,
            iss={"essential": True, "value": self._issuer},
            sub={"essential": True},
            aud={"essential": True, "value": self._client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            wanted.validate(claims)
        except JoseError as error:
            log.warning("oidc_claims_refused", error=str(error))
            raise LoginFailed("The ID token belongs to another login (nonce mismatch).") from error
        if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != self._client_id:
            raise LoginFailed("The ID token was issued for another client (audience mismatch).")
        return claims

    async def _discover(self) -> dict[str, Any]:
        if self._clock() - self._fetched_at > _CACHE_SEC:
            url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
            about = _json(await self._request("GET", url))
            if about.get("issuer") != self._issuer:
                raise Unavailable("The issuer does not match accounts.oidc_issuer.")
            self._about, self._keys, self._fetched_at = about, None, self._clock()
        return self._about

    async def _key_set(self, about: dict[str, Any], *, anew: bool) -> KeySet:
        if self._keys is None or anew:
            found: Any = _json(await self._request("GET", str(about["jwks_uri"])))
            self._keys = KeySet.import_key_set(found)
        return self._keys

    async def _request(self, method: str, url: str, **options: Any) -> httpx.Response:
        try:
            # The client's timeout is per read: a response that arrives byte by byte would never exceed it.
            async with asyncio.timeout(self._timeout_sec), httpx.AsyncClient(timeout=self._timeout_sec) as client:
                return await client.request(method, url, **options)
        except (httpx.HTTPError, TimeoutError) as error:
            log.warning("oidc_provider_unavailable", error=type(error).__name__)
            raise Unavailable("The identity provider does not respond.") from error


def _verify_signature(token: str, keys: KeySet) -> dict[str, Any] | None:
    """The claims of a token, if one of the keys signed it."""
    try:
        return dict(jwt.decode(token, keys, algorithms=_ALGORITHMS).claims)
    except (JoseError, ValueError):
        return None


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json() if answer.status_code < 400 else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unavailable("Unexpected response from the identity provider.")
    return found
