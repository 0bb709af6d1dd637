"""How to react to errors of databases, queues, file stores and other servers: one classification for all drivers.

Each driver has a table from its exception classes to a reaction; ``docs/reference/outages.md`` lists them. A class
without an entry takes the reaction of its nearest base class.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from adjudge.domain.errors import AdjudgeError, InternalFault, InvalidInput, Unavailable


class Reaction(StrEnum):
    """How to react to an error of a driver."""

    WAIT = "wait"
    """The other side is temporarily unavailable: ``Unavailable``. Long-lived tasks retry with growing delays."""
    REFUSE = "refuse"
    """The request is invalid: the caller gets an error, and a retry would not help."""
    FATAL = "fatal"
    """A defect of Adjudge or its installation: ``InternalFault``. It is not retried."""


Reactions: TypeAlias = Mapping[type[BaseException], Reaction]


def reaction_to(error: BaseException | type[BaseException], table: Reactions) -> Reaction:
    """The reaction to an error, by its nearest base class in the table; unknown classes are fatal."""
    kind = error if isinstance(error, type) else type(error)
    return next((table[base] for base in kind.__mro__ if base in table), Reaction.FATAL)


def of_database(reaction: Reaction, name: str, message: str) -> AdjudgeError:
    """Convert a database error to an AdjudgeError."""
    if reaction is Reaction.WAIT:
        return Unavailable(f"{name} is unavailable: {message}.")
    if reaction is Reaction.REFUSE:
        return InvalidInput(f"Invalid value for the database: {message}.")
    return InternalFault(f"{name}: statement failed: {message}.")
