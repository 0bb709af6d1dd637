"""Sends one request to a receiver that a user chose, and says whether another attempt may succeed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx

from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.services.http_client import GuardedTransport


class DeliveryFailed(Unavailable):
    """The receiver did not accept the delivery; it is retried."""

    code = "DELIVERY_FAILED"

    def __init__(self, message: str | None = None, response_status: int | None = None) -> None:
        super().__init__(message)
        self.response_status = response_status


async def deliver(
    transport: GuardedTransport, method: str, url: str, *, headers: Mapping[str, str], body: bytes, timeout_sec: float
) -> int:
    """Send once and return the status; any response but 2xx is ``DeliveryFailed``, an unusable URL ``InvalidInput``."""
    try:
        async with (
            asyncio.timeout(timeout_sec),
            transport.send(method, url, headers=headers, body=body, timeout_sec=timeout_sec) as response,
        ):
            status = response.status_code  # the body is not read
    except TimeoutError:
        raise DeliveryFailed(f"No answer within {timeout_sec} s.") from None
    except ValueError as error:
        raise InvalidInput(f"url: {url[:200]!r} cannot be called: {error}.", field="url") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise DeliveryFailed(f"{type(error).__name__}: {error}") from error
    if not 200 <= status < 300:
        raise DeliveryFailed(f"HTTP {status} from receiver; expected 2xx.", status)
    return status
