"""``map`` as a type: what to run for every item of a list, rewritten to the node attribute that the engine knows.

::

    {"id": "each", "type": "map", "cfg": {"over": "{{ artifacts.list.problems }}", "as": "problem",
        "node": {"type": "problem.verify", "cfg": {"problem": "{{ problem.slug }}"}}}}
    {"id": "each", "type": "map", "cfg": {"over": […], "chain": "verify-one", "parameters": {"slug": "{{ item }}"}}}

Both become a node of the inner type (the second of type ``chain``) with ``map``: ``over``, ``as``, ``max_parallel``.
Definitions are rewritten whenever they are read, so nothing else ever meets the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adjudge.chains.validation import check_cfg
from adjudge.domain.errors import InvalidInput

MAP: Final = "map"
SUBCHAIN_TYPE: Final = "chain"
"""The node type that starts another chain (``executors.subchain``)."""
MAP_SUMMARY: Final = (
    "Runs one node, or one chain, for every item of a list, and joins them: it succeeds when all of them have.\n\n"
    "Its artifact is the list of theirs, in the order of the items. It is written as a type and kept as the attribute\n"
    "`map` that any node may have."
)
MAP_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "over": {"description": "The list, or a template that becomes one."},
        "as": {"type": "string", "description": "What templates call the item; `item` where it is left out."},
        "max_parallel": {"type": "integer", "minimum": 1, "description": "How many may run at once."},
        "node": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "The inner node's type."},
                "cfg": {"type": "object", "description": "Its cfg; templates may name the item."},
            },
            "required": ["type"],
            "additionalProperties": False,
            "description": "What to run for each item: `type` and `cfg`.",
        },
        "chain": {"type": "string", "description": "Or a chain to start for each item."},
        "parameters": {"type": "object", "description": "Parameters of that chain's runs."},
    },
    "required": ["over"],
    "oneOf": [{"required": ["node"]}, {"required": ["chain"]}],
    "additionalProperties": False,
}


def expand_map_nodes(document: Any) -> Any:
    """The DAG with every ``map`` node rewritten; whatever is wrong in other ways is left for the reader to say."""
    if not isinstance(document, Mapping) or not isinstance(document.get("nodes"), list):
        return document
    return {**document, "nodes": [_rewritten(node) for node in document["nodes"]]}


def _rewritten(node: Any) -> Any:
    if not isinstance(node, Mapping) or node.get("type") != MAP:
        return node
    place = f"node {node.get('id')!r}: cfg"
    cfg = node.get("cfg") or {}
    check_cfg(MAP_SCHEMA, cfg, place=place, templated=True)
    if "map" in node:
        raise InvalidInput(f"node {node.get('id')!r}: it is of type map and has a map besides; keep one.", field="map")
    if "parameters" in cfg and "chain" not in cfg:
        raise InvalidInput(
            f"{place}.parameters: only valid with `chain`; put a node's parameters in its cfg.", field="parameters"
        )
    fan = {name: cfg[name] for name in ("over", "as", "max_parallel") if name in cfg}
    if "chain" in cfg:
        inner = {"type": SUBCHAIN_TYPE, "cfg": {name: cfg[name] for name in ("chain", "parameters") if name in cfg}}
    else:
        inner = {"type": cfg["node"]["type"], "cfg": cfg["node"].get("cfg", {})}
    return {**node, **inner, "map": fan}
