"""``http`` and ``notify``: outgoing HTTP calls to the hosts that the operator allows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from adjudge.chains.executor import NodeContext, NodeFailed, NodeResult
from adjudge.domain.errors import NodeRefused
from adjudge.domain.permissions import Permission
from adjudge.observe.logs import get_logger
from adjudge.services.http_client import GuardedHttpClient, OutgoingRequest, OutgoingResponse

_log = get_logger(__name__)
_RESERVED_HEADERS: Final = frozenset(
    {"host", "accept-encoding", "content-length", "transfer-encoding", "connection", "idempotency-key"}
)
_HEADERS: Final = {
    "type": "object",
    "additionalProperties": {"type": "string", "pattern": r"^[^\r\n\u0000]*$"},
    "propertyNames": {"pattern": r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"},
    "description": "Headers to send.",
}
_TIMEOUT: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 120_000,
    "description": "How long the whole call may take; 10000 where it is left out.",
}


class HttpExecutor:
    """Calls a URL and hands on its answer: `status`, `headers`, and `json` or `text`.

    Only hosts of the setting `chains.http_allow` can be called. Calls are signed with `chains.http_secret` and carry
    an `Idempotency-Key` that stays the same over all attempts of the node. An answer of 5xx, 408, 425 or 429 that is
    not expected is tried again; any other that is not expected fails the node for good.
    """

    type: ClassVar[str] = "http"
    secret_fields: ClassVar[frozenset[str]] = frozenset({"url", "headers", "json", "body"})
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.RUN_CONTROL,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "method": {
                "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
                "description": "GET where it is left out.",
            },
            "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "Where to."},
            "headers": _HEADERS,
            "json": {"description": "A JSON body."},
            "body": {"type": "string", "description": "A text body, instead of json."},
            "expect": {
                "type": "array",
                "items": {"type": "integer", "minimum": 100, "maximum": 599},
                "minItems": 1,
                "description": "Answers that are fine; any 2xx where it is left out.",
            },
            "timeout_ms": _TIMEOUT,
            "max_bytes": {
                "type": "integer",
                "minimum": 1,
                "maximum": 1_048_576,
                "description": "The longest answer; 262144 where it is left out.",
            },
        },
        "required": ["url"],
        "not": {"required": ["json", "body"]},
        "additionalProperties": False,
    }

    def __init__(self, outgoing: GuardedHttpClient) -> None:
        self._outgoing = outgoing

    async def execute(self, context: NodeContext) -> NodeResult:
        cfg = context.cfg
        call = _call(context, cfg.get("method", "GET"))
        answer = await self._outgoing.call(call)
        await context.log(f"{call.method} {answer.url}: {answer.status}, {len(answer.body)} bytes")
        _check_status(answer, cfg.get("expect"))
        return NodeResult(answer.document())


class NotifyExecutor:
    """Says something: a line in the node's log, and a POST to a webhook where `url` is given.

    The POST's JSON has `text`, `data`, `chain`, `run_id` and `node_id`, and is signed like those of `http`.
    """

    type: ClassVar[str] = "notify"
    secret_fields: ClassVar[frozenset[str]] = frozenset({"url", "headers"})
    permissions: ClassVar[tuple[Permission, ...]] = (Permission.RUN_CONTROL,)
    cfg_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "What to say."},
            "data": {"description": "Any JSON value to send along."},
            "url": {"type": "string", "description": "A webhook on a host of the list."},
            "headers": _HEADERS,
            "timeout_ms": _TIMEOUT,
        },
        "required": ["text"],
        "additionalProperties": False,
    }

    def __init__(self, outgoing: GuardedHttpClient) -> None:
        self._outgoing = outgoing

    async def execute(self, context: NodeContext) -> NodeResult:
        """Log the message and send it to the webhook, if there is one."""
        cfg = context.cfg
        await context.log(cfg["text"])
        _log.info("chain_notify", run_id=context.run_id, node_id=context.node_id, text=cfg["text"])
        if "url" not in cfg:
            return NodeResult({"text": cfg["text"]})
        message = {
            "text": cfg["text"],
            "data": cfg.get("data"),
            "chain": context.chain_name,
            "run_id": context.run_id,
            "node_id": context.node_id,
        }
        answer = await self._outgoing.call(_call(context, "POST", message))
        _check_status(answer, None)
        return NodeResult({"text": cfg["text"], "status": answer.status})


def _call(context: NodeContext, method: str, message: Any = None) -> OutgoingRequest:
    cfg = context.cfg
    body, kind = b"", ""
    if message is not None or "json" in cfg:
        body, kind = json.dumps(cfg["json"] if message is None else message).encode(), "application/json"
    elif "body" in cfg:
        body, kind = cfg["body"].encode(), "text/plain; charset=utf-8"
    headers = {name: value for name, value in cfg.get("headers", {}).items() if name.lower() not in _RESERVED_HEADERS}
    if kind and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = kind
    headers["Idempotency-Key"] = f"{context.run_id}/{context.node_id}"
    return OutgoingRequest(
        method, cfg["url"], headers, body, cfg.get("timeout_ms", 10_000), cfg.get("max_bytes", 256 * 1024)
    )


def _check_status(answer: OutgoingResponse, expected: list[int] | None) -> None:
    is_expected = answer.status in expected if expected else 200 <= answer.status < 300
    if is_expected:
        return
    excerpt = answer.body[:200].decode(errors="replace").strip()
    message = f"{answer.url}: answered {answer.status}" + (f": {excerpt}" if excerpt else ".")
    raise NodeFailed(message) if answer.is_retryable else NodeRefused(message)
