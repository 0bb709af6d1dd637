"""Reactions to the errors of obstore."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from obstore import exceptions as errors

from adjudge.domain.errors import AdjudgeError, InternalFault, NotFound, Unavailable
from adjudge.domain.reactions import Reaction, Reactions, reaction_to

REACTIONS: Final[Reactions] = MappingProxyType(
    {
        errors.BaseError: Reaction.FATAL,
        errors.GenericError: Reaction.WAIT,  # errors without a class of their own: no connection, 5xx, timeout
        errors.PermissionDeniedError: Reaction.WAIT,  # keys may be rotated while the process runs
        errors.UnauthenticatedError: Reaction.WAIT,
        errors.JoinError: Reaction.WAIT,
        OSError: Reaction.WAIT,
        errors.NotFoundError: Reaction.REFUSE,
        FileNotFoundError: Reaction.REFUSE,
        errors.AlreadyExistsError: Reaction.REFUSE,
        errors.PreconditionError: Reaction.REFUSE,
        errors.NotModifiedError: Reaction.REFUSE,
        errors.InvalidPathError: Reaction.FATAL,
        errors.NotSupportedError: Reaction.FATAL,
        errors.UnknownConfigurationKeyError: Reaction.FATAL,
    }
)
"""Exception class of obstore → reaction. A missing bucket is waited for; a missing object is not."""

_NOT_ALLOWED: Final = re.compile(r"status code: 40[13]\b")


def translated(error: Exception, endpoint: str, digest: str = "") -> AdjudgeError:
    """Convert an error of obstore, raised while accessing ``digest`` if that is set."""
    message = str(error)
    if reaction_to(error, REACTIONS) is Reaction.REFUSE and digest:
        return NotFound("blob", digest)
    if isinstance(error, errors.NotFoundError | FileNotFoundError) or "NoSuchBucket" in message:
        return Unavailable(f"S3 has no bucket {endpoint}: create it.")
    refused = (errors.PermissionDeniedError, errors.UnauthenticatedError)
    if isinstance(error, refused) or _NOT_ALLOWED.search(message):  # errors of a listing have no class of their own
        return Unavailable(f"S3 at {endpoint}: access denied ({type(error).__name__}).")
    if reaction_to(error, REACTIONS) is Reaction.WAIT:
        return Unavailable(f"S3 at {endpoint} is unavailable ({type(error).__name__}).")
    return InternalFault(f"S3 at {endpoint}: request failed ({type(error).__name__}: {message[:200]}).")
