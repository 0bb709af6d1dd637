"""The interface of components that follow changes of submissions in the transaction that makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adjudge.store.engine.driver import Tx
from adjudge.store.judging.models import NewSubmission


class SubmissionListener(Protocol):
    """Follows the submissions of contests; it is not called for others, which therefore cost nothing."""

    async def created(self, tx: Tx, submissions: Sequence[NewSubmission]) -> None:
        """Submissions that name a contest were created."""
        ...

    async def changed(self, tx: Tx, submission_ids: Sequence[str]) -> None:
        """The verdict or the final status of submissions that name a contest changed."""
        ...
