"""How an executor says no for good."""

from __future__ import annotations

from adjudge.domain.errors import Conflict


class NodeRefused(Conflict):
    """The node's work ended in a no that another attempt would not change."""

    code = "NODE_REFUSED"
