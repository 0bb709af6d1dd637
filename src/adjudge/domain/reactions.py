"""What to do about an error of a database, a queue, a file store or another server: one vocabulary for every driver.

Each driver's package has a table from the driver's exception classes to a reaction; the tables together are
``docs/reference/outages.md``. A class that is not in a table takes the reaction of its nearest base that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from adjudge.domain.errors import AdjudgeError, InternalFault, InvalidInput, Unavailable


class Reaction(StrEnum):
    """The three ways to react to a driver's error."""

    WAIT = "wait"
    """The other side cannot serve now: ``Unavailable``. Long-lived tasks wait with growing pauses and try again."""
    REFUSE = "refuse"
    """What was asked is at fault: the caller gets an error about the request, and trying again would not help."""
    FATAL = "fatal"
    """A defect of Adjudge or of its installation: ``InternalFault``. It is never waited out."""


Reactions: TypeAlias = Mapping[type[BaseException], Reaction]


def reaction_to(error: BaseException | type[BaseException], table: Reactions) -> Reaction:
    """Look up the nearest base of an error's class; what no table knows is fatal."""
    kind = error if isinstance(error, type) else type(error)
    return next((table[base] for base in kind.__mro__ if base in table), Reaction.FATAL)


def of_database(reaction: Reaction, name: str, words: str) -> AdjudgeError:
    """Our own error for one of a database called ``name``, in its ``words``."""
    if reaction is Reaction.WAIT:
        return Unavailable(f"{name} cannot serve: {words}.")
    if reaction is Reaction.REFUSE:
        return InvalidInput(f"A value that the database cannot hold: {words}.")
    return InternalFault(f"{name} refused a statement: {words}.")
