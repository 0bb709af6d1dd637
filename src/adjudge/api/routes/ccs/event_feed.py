"""The event feed of the Contest API: one JSON object per line, without an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from adjudge.api.routes.ccs.collections import ContestId, Reader
from adjudge.api.routes.ccs.routing import PREFIXES, ccs_router
from adjudge.api.sse import LiveResponse, SseConnections
from adjudge.contests.ccs.version import CcsVersion
from adjudge.domain.errors import InvalidInput
from adjudge.services.ccs_feed import CcsFeedService, FeedRequest

MEDIA_TYPE: Final = "application/x-ndjson"
_FEED: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Notifications, one JSON object per line; an empty line at least every ten seconds.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}


def event_feed_routers(service: CcsFeedService, connections: SseConnections) -> Sequence[APIRouter]:
    """The routers of all prefixes."""
    return [_event_feed_router(prefix, version, service, connections) for prefix, version in PREFIXES.items()]


def _event_feed_router(
    prefix: str, version: CcsVersion, service: CcsFeedService, connections: SseConnections
) -> APIRouter:
    routes = ccs_router(prefix)

    @routes.get(
        "/contests/{contest}/event-feed",
        summary="Follow a contest",
        description="All objects that you may see, then their changes. A `token` resumes the feed after its event.",
        responses=_FEED,
        response_class=StreamingResponse,
    )
    async def event_feed(
        contest: ContestId,
        viewer: Reader,
        *,
        since_token: Annotated[
            str | None, Query(max_length=64, description="The token of the last event received.")
        ] = None,
        stream: Annotated[bool, Query(description="`false`: end the response at the present.")] = True,
        since_id: Annotated[str | None, Query(max_length=64, include_in_schema=False)] = None,
    ) -> StreamingResponse:
        if since_id is not None:
            raise InvalidInput("since_id: events have tokens; use since_token.", field="since_id")
        lines = await service.open(viewer, FeedRequest(contest, version, since_token, is_stream=stream))
        return LiveResponse(connections, viewer, lines, media_type=MEDIA_TYPE)

    return routes
