"""What Redis's errors mean: the table of its client's exception classes, and of the codes that have no class.

redis-py takes the code off the message where it has a class for it (READONLY, OOM, NOPERM …) and leaves it in front
where it has none (WRONGTYPE, MISCONF …). An error inside a script has the code in front too, or, before Redis 7, behind
``Error running script``.
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
        # It is away, starting, full of clients, or does not let us in: an operator can change each under our feet.
        errors.ConnectionError: Reaction.WAIT,
        errors.TimeoutError: Reaction.WAIT,
        OSError: Reaction.WAIT,
        errors.InvalidResponse: Reaction.WAIT,  # the connection is out of step; the next one is not
        # It answers, and cannot do this now. After a failover a replica answers where the primary was.
        errors.ReadOnlyError: Reaction.WAIT,
        errors.OutOfMemoryError: Reaction.WAIT,
        errors.NoPermissionError: Reaction.WAIT,
        errors.ClusterError: Reaction.WAIT,
        errors.ClusterDownError: Reaction.WAIT,
        errors.TryAgainError: Reaction.WAIT,
        errors.AskError: Reaction.WAIT,  # and MOVED: slots are being moved in a cluster
        errors.NoScriptError: Reaction.WAIT,  # the scripts were flushed between loading and calling one
        errors.ExecAbortError: Reaction.WAIT,
        # Wrong calls, and an address that cannot work.
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
"""Code in front of an answer → reaction. WRONGTYPE: somebody wrote another kind of value under one of our keys; it is
waited out because the key can be deleted while the processes run."""

_UNKNOWN_TO_IT: Final = "unauthenticated multibulk length"
"""What Redis says to a long command before the password: it has neither a code nor a class."""
_LOCKED_OUT: Final = (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError)


def code_of(words: str) -> str:
    """The code that an answer of Redis, or an error inside a script, begins with; empty where there is none."""
    first, *_ = words.split(maxsplit=1) or [""]
    if first in CODES or "Error running script" not in words:
        return first if first in CODES else ""
    return next((code for word in words.split() if (code := word.lstrip("-")) in CODES), "")


def is_waited_out(words: str) -> bool:
    """Whether an answer that a script noted for one of its rows concerns Redis rather than the row."""
    return CODES.get(code_of(words)) is Reaction.WAIT


def reaction_of(error: BaseException) -> Reaction:
    """What to do about an error of redis-py: by its class, and where that is the general one by its code."""
    if type(error) is errors.ResponseError:
        return Reaction.WAIT if _UNKNOWN_TO_IT in str(error) else CODES.get(code_of(str(error)), Reaction.FATAL)
    return reaction_to(error, REACTIONS)


def translated(error: Exception, place: str) -> AdjudgeError:
    """Our own error for one of redis-py's; ``place`` is what may be said of where Redis is."""
    words = str(error)[:200]
    if isinstance(error, _LOCKED_OUT) or code_of(words) in {"NOAUTH", "NOPERM"} or _UNKNOWN_TO_IT in words:
        return Unavailable(
            f"Redis at {place} refused our credentials or lacks a permission: check the URL's user and password, "
            f"and that user's ACL. Redis said: {words}"
        )
    if reaction_of(error) is Reaction.FATAL:
        return InternalFault(f"Redis at {place} did not understand us: {words}")
    if isinstance(error, errors.ConnectionError | errors.TimeoutError | OSError) and not isinstance(
        error, errors.BusyLoadingError
    ):
        return Unavailable(f"Redis at {place} is away ({type(error).__name__}).")
    return Unavailable(f"Redis at {place} cannot serve: {_named(error)}{words}")


def _named(error: Exception) -> str:
    """The class where it says more than the words: redis-py took the code off them."""
    return "" if type(error) is errors.ResponseError else f"{type(error).__name__}: "
