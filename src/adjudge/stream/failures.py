"""Reactions to the errors of Redis: by exception class, and by error code where there is no class.

redis-py removes the code from the message if it has a class for it (READONLY, OOM, NOPERM …) and keeps it otherwise
(WRONGTYPE, MISCONF …). An error inside a script has the code in front, too, or, before Redis 7, after ``Error running
script``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from redis import exceptions as errors

from adjudge.domain.errors import AdjudgeError, InternalFault, Unavailable
from adjudge.domain.reactions import Reaction, Reactions, reaction_to

REACTIONS: Final[Reactions] = MappingProxyType(
    {
        errors.RedisError: Reaction.FATAL,
        # Down, starting, too many clients, or access denied: an operator can change each while the process runs.
        errors.ConnectionError: Reaction.WAIT,
        errors.TimeoutError: Reaction.WAIT,
        OSError: Reaction.WAIT,
        errors.InvalidResponse: Reaction.WAIT,  # the connection is out of sync; a new one is not
        # It replies, but cannot do this now. After a failover a replica may reply instead of the primary.
        errors.ReadOnlyError: Reaction.WAIT,
        errors.OutOfMemoryError: Reaction.WAIT,
        errors.NoPermissionError: Reaction.WAIT,
        errors.ClusterError: Reaction.WAIT,
        errors.ClusterDownError: Reaction.WAIT,
        errors.TryAgainError: Reaction.WAIT,
        errors.AskError: Reaction.WAIT,  # and MOVED: slots of a cluster are being moved
        errors.NoScriptError: Reaction.WAIT,  # the scripts were flushed between loading and calling
        errors.ExecAbortError: Reaction.WAIT,
        # Invalid calls, and an invalid URL.
        errors.ResponseError: Reaction.FATAL,
        errors.ClusterCrossSlotError: Reaction.FATAL,
        errors.AuthenticationWrongNumberOfArgsError: Reaction.FATAL,
        errors.DataError: Reaction.FATAL,
    }
)
"""Exception class of redis-py → reaction."""

CODES: Final[Mapping[str, Reaction]] = MappingProxyType(
    {
        "READONLY": Reaction.WAIT,
        "OOM": Reaction.WAIT,
        "LOADING": Reaction.WAIT,
        "MASTERDOWN": Reaction.WAIT,
        "CLUSTERDOWN": Reaction.WAIT,
        "TRYAGAIN": Reaction.WAIT,
        "NOPERM": Reaction.WAIT,
        "NOAUTH": Reaction.WAIT,
        "BUSY": Reaction.WAIT,
        "UNKILLABLE": Reaction.WAIT,
        "MISCONF": Reaction.WAIT,
        "NOREPLICAS": Reaction.WAIT,
        "NOSCRIPT": Reaction.WAIT,
        "NOGROUP": Reaction.WAIT,
        "UNBLOCKED": Reaction.WAIT,
        "WRONGTYPE": Reaction.WAIT,
    }
)
"""Error code → reaction. WRONGTYPE: another program wrote a different type under one of our keys; it is waited for,
because the key can be deleted while the processes run."""

_UNKNOWN_TO_IT: Final = "unauthenticated multibulk length"
"""Redis's reply to a long command before authentication; it has neither a code nor a class."""
_LOCKED_OUT: Final = (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError)


def code_of(message: str) -> str:
    """The code at the beginning of an error message, also of an error inside a script; empty if there is none."""
    first, *_ = message.split(maxsplit=1) or [""]
    if first in CODES or "Error running script" not in message:
        return first if first in CODES else ""
    return next((code for word in message.split() if (code := word.lstrip("-")) in CODES), "")


def is_waited_out(message: str) -> bool:
    """Whether an error that a script recorded for a row concerns Redis, not the row."""
    return CODES.get(code_of(message)) is Reaction.WAIT


def reaction_of(error: BaseException) -> Reaction:
    """The reaction to an error of redis-py: by its class or, for the general class, by its code."""
    if type(error) is errors.ResponseError:
        return Reaction.WAIT if _UNKNOWN_TO_IT in str(error) else CODES.get(code_of(str(error)), Reaction.FATAL)
    return reaction_to(error, REACTIONS)


def translated(error: Exception, endpoint: str) -> AdjudgeError:
    """Convert an error of redis-py; ``place`` is the URL without credentials."""
    message = str(error)[:200]
    if isinstance(error, _LOCKED_OUT) or code_of(message) in {"NOAUTH", "NOPERM"} or _UNKNOWN_TO_IT in message:
        return Unavailable(
            f"Redis at {endpoint}: authentication failed or permission denied; check the user and password in the URL, "
            f"and that user's ACL. Redis said: {message}"
        )
    if reaction_of(error) is Reaction.FATAL:
        return InternalFault(f"Redis at {endpoint}: unexpected error: {message}")
    if isinstance(error, errors.ConnectionError | errors.TimeoutError | OSError) and not isinstance(
        error, errors.BusyLoadingError
    ):
        return Unavailable(f"Redis at {endpoint} is unavailable ({type(error).__name__}).")
    return Unavailable(f"Redis at {endpoint} is unavailable: {_named(error)}{message}")


def _named(error: Exception) -> str:
    """The name of the class if redis-py removed the code from the message."""
    return "" if type(error) is errors.ResponseError else f"{type(error).__name__}: "
