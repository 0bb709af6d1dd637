"""Server-sent events about submissions and contests."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header
from fastapi.responses import StreamingResponse

from adjudge.api.auth import require_permission
from adjudge.api.routing import api_router
from adjudge.api.sse import EventStreamResponse, SseConnections
from adjudge.domain.permissions import Permission
from adjudge.services.submission_events import Stream, StreamEvent, SubmissionEventService
from adjudge.services.user_events import UserEventService
from adjudge.services.viewer import Viewer

_RETRY_MS: Final = 1_000
STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Server-sent events; see the event reference.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=80, description="ID of the last event received.")
]


def router(events: SubmissionEventService, users: UserEventService, connections: SseConnections) -> APIRouter:
    """Streams of one submission, of a user, and of all submissions."""
    routes = api_router("events")

    @routes.get(
        "/submissions/{submission_id}/events",
        summary="Stream the events of a submission",
        description="The last event is `end`, when there is a verdict.",
        responses=STREAM,
        response_class=StreamingResponse,
    )
    async def of_submission(
        submission_id: str,
        viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_READ)],
        last_event_id: LastEventId = None,
    ) -> StreamingResponse:
        return EventStreamResponse(
            connections,
            viewer,
            encode_stream(await events.stream_submission(viewer, submission_id, last_event_id)),
        )

    @routes.get(
        "/me/events",
        summary="Stream your events",
        description="Those of your submissions, and of contests that you take part in.",
        responses=STREAM,
        response_class=StreamingResponse,
    )
    async def of_user(
        viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_READ)], last_event_id: LastEventId = None
    ) -> StreamingResponse:
        return EventStreamResponse(connections, viewer, encode_stream(await users.stream(viewer, last_event_id)))

    @routes.get(
        "/events", summary="Stream the events of all submissions", responses=STREAM, response_class=StreamingResponse
    )
    async def of_all(
        viewer: Annotated[Viewer, require_permission(Permission.SUBMISSION_READ_ALL)],
        last_event_id: LastEventId = None,
    ) -> StreamingResponse:
        return EventStreamResponse(connections, viewer, encode_stream(await events.stream_all(last_event_id)))

    return routes


async def encode_stream(stream: Stream) -> AsyncGenerator[str, None]:
    yield f"retry: {_RETRY_MS}\n\n"
    async with aclosing(stream):
        async for batch in stream:
            yield "".join([encode_event(event) for event in batch])


def encode_event(event: StreamEvent) -> str:
    return event.text
