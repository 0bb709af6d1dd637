"""Client for the HTTP API, blocking or asyncio.

The package imports ``domain`` and ``schema`` (the response models) only, so that a program that submits does not load
the server.

Each operation is a generator of I/O steps (``sans_io``): requests, delays, stream reads. The two clients only execute
the steps, so that no logic exists twice (ADR 0077).
"""

from adjudge.client.client import AsyncClient, Client
from adjudge.client.errors import (
    ApiError,
    AuthenticationError,
    BadResponseError,
    ClientError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitedError,
    ServerError,
    UnreachableError,
    WaitTimeoutError,
)
from adjudge.client.models import ExecutionSpec, SubmissionSpec, TriggerSpec
from adjudge.client.retry import ClientRetryPolicy

__all__ = [
    "ApiError",
    "AsyncClient",
    "AuthenticationError",
    "BadResponseError",
    "Client",
    "ClientError",
    "ClientRetryPolicy",
    "ConflictError",
    "ExecutionSpec",
    "InvalidRequestError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitedError",
    "ServerError",
    "SubmissionSpec",
    "TriggerSpec",
    "UnreachableError",
    "WaitTimeoutError",
]
