"""The client: Adjudge from another program, blocking or with asyncio, by the same operations.

What belongs here: what the API can be asked, how often a request is tried, and values for the answers. What does not:
anything of the server. The room imports ``domain`` alone, so a program that submits does not carry a judge with it.

Each operation is a generator of steps (``steps``): what to send, how long to pause, what to listen to. The two clients
only take the steps, so there is no logic that exists twice.
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
