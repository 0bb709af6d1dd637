"""The table of error codes, and the conversion of errors to problem responses (RFC 9457).

Codes come from the error classes in ``adjudge.domain.errors`` and from HTTP itself. The reference page is generated
from :func:`error_code_table`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from adjudge.api.schema.base import ErrorResponse, FieldError
from adjudge.domain.errors import AdjudgeError, BodyTooLarge, InternalFault, InvalidInput, NotFound
from adjudge.observe.logs import get_logger

MEDIA_TYPE: Final = "application/problem+json"
_RETRY_AFTER_SEC: Final = 1
_NO_CODE: Final = "HTTP_ERROR"
MAX_REPORTED: Final = 20
"""Maximum number of errors that a response lists; one request can contain millions."""
_MAX_MESSAGE_CHARS: Final = 500
_MAX_DETAIL_CHARS: Final = 4_000

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ErrorCodeRow:
    """One row of the error reference."""

    code: str
    status: int
    retryable: bool
    meaning: str


_HTTP_ROWS: Final = (
    ErrorCodeRow("ROUTE_NOT_FOUND", 404, False, "Path not found."),
    ErrorCodeRow("METHOD_NOT_ALLOWED", 405, False, "Method not allowed."),
    ErrorCodeRow(
        "MALFORMED_BODY", 400, False, "Malformed body: invalid JSON or UTF-8, nested too deeply, or truncated."
    ),
    ErrorCodeRow("UNSUPPORTED_MEDIA_TYPE", 415, False, "Unsupported media type."),
    ErrorCodeRow(_NO_CODE, 418, False, "HTTP error; see the status."),
)
_HTTP_CODES: Final = {row.status: row.code for row in _HTTP_ROWS if row.code != _NO_CODE} | {
    BodyTooLarge.http_status: BodyTooLarge.code
}


def error_code_table() -> list[ErrorCodeRow]:
    return sorted({*_tree_rows(AdjudgeError), *_HTTP_ROWS}, key=lambda row: (row.status, row.code))


def _tree_rows(kind: type[AdjudgeError]) -> Iterator[ErrorCodeRow]:
    for child in kind.__subclasses__():
        meaning = (child.__doc__ or "").strip().splitlines()[0]
        if child is NotFound:
            yield ErrorCodeRow("<KIND>_NOT_FOUND", child.http_status, child.retryable, meaning)
        elif "code" in vars(child):
            yield ErrorCodeRow(child.code, child.http_status, child.retryable, meaning)
        yield from _tree_rows(child)


def install_error_handlers(app: FastAPI) -> None:
    """Convert every error of a route to a problem response."""

    @app.exception_handler(AdjudgeError)
    async def of_ours(request: Request, error: AdjudgeError) -> Response:
        return handle_error(error, get_request_id(request))

    @app.exception_handler(RequestValidationError)
    async def of_validation(request: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        wrong = [
            _field_problem(".".join(str(part) for part in item["loc"]), item["msg"]) for item in found[:MAX_REPORTED]
        ]
        if any(item["type"] == "json_invalid" for item in found[:MAX_REPORTED]):
            problem = _problem("MALFORMED_BODY", 400, "The body is not valid JSON.", get_request_id(request))
            return _response(problem.model_copy(update={"errors": wrong}), {})
        summary = "; ".join(f"{item.field}: {item.message}" for item in wrong) + _and_more(len(found))
        return error_response(InvalidInput(summary), get_request_id(request), wrong)

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405 and request.method == "OPTIONS":
            return Response(status_code=204, headers=dict(error.headers or {}))
        code = _HTTP_CODES.get(error.status_code, _NO_CODE)
        problem = _problem(code, error.status_code, str(error.detail), get_request_id(request))
        return _response(problem, dict(error.headers or {}))


def handle_error(error: AdjudgeError, request_id: str) -> Response:
    """The response to an error that a route raised; server errors (5xx) are logged."""
    if error.http_status >= 500:
        log.error("request_failed", code=error.code, detail=error.message, exc_info=error)
    return error_response(error, request_id)


def error_response(error: AdjudgeError, request_id: str, wrong: list[FieldError] | None = None) -> Response:
    fields = {
        name: _escape_surrogates(_shorten(str(value))) for name, value in error.fields.items() if name != "problems"
    }
    problem = _problem(error.code, error.http_status, error.message, request_id).model_copy(
        update={"fields": fields, "errors": wrong or _error_list(error)}
    )
    headers = {}
    if error.retryable:
        headers["Retry-After"] = str(error.fields.get("retry_after_sec", _RETRY_AFTER_SEC))
    return _response(problem, headers)


def _error_list(error: AdjudgeError) -> list[FieldError]:
    """One entry for each of the ``problems`` of an error, if it has several."""
    problems = error.fields.get("problems")
    if not isinstance(problems, list):
        return []
    field = str(error.fields.get("field", ""))
    return [_field_problem(field, item) for item in problems[:MAX_REPORTED]]


def _field_problem(field: str, message: object) -> FieldError:
    return FieldError(field=_escape_surrogates(_shorten(field)), message=_escape_surrogates(_shorten(str(message))))


def _shorten(text: str) -> str:
    """Shorten a name or message that may quote the request."""
    return text if len(text) <= _MAX_MESSAGE_CHARS else f"{text[:_MAX_MESSAGE_CHARS]}…"


def _and_more(count: int) -> str:
    return f"; and {count - MAX_REPORTED} more" if count > MAX_REPORTED else ""


def internal_error_response(request_id: str) -> Response:
    """The response to an unexpected error; the details are only in the log, under the request id."""
    return error_response(InternalFault(), request_id)


def problem_json(status: int, detail: str, request_id: str) -> bytes:
    """The body of the response to data that the HTTP parser rejected."""
    return (
        _problem(_HTTP_CODES.get(status, _NO_CODE), status, detail, request_id)
        .model_dump_json(exclude_defaults=True)
        .encode()
    )


def get_request_id(request: Request) -> str:
    request_id: str = request.state.request_id
    return request_id


def _problem(code: str, status: int, detail: str, request_id: str) -> ErrorResponse:
    return ErrorResponse(
        type=f"urn:adjudge:error:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=_escape_surrogates(detail[:_MAX_DETAIL_CHARS]),
        code=code,
        request_id=request_id,
    )


def _escape_surrogates(given: object) -> str:
    """Replace lone surrogates, which JSON can express but UTF-8 cannot encode, by their escape sequences."""
    return str(given).encode(errors="backslashreplace").decode()


def _response(problem: ErrorResponse, headers: dict[str, str]) -> Response:
    body = problem.model_dump_json(exclude_defaults=True)
    return Response(body, problem.status, headers, MEDIA_TYPE)
