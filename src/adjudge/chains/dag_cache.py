"""Validates definitions, and caches parsed DAGs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from cachetools import FIFOCache

from adjudge.chains import secrets, templating
from adjudge.chains.map_node import expand_map_nodes
from adjudge.domain.chain import ChainLimits, Dag, Node
from adjudge.domain.chain_parser import CheckNode, parse_dag, parse_validated_dag
from adjudge.domain.errors import InvalidInput
from adjudge.store.chains import concurrency, definitions
from adjudge.store.engine.driver import Tx

_KEPT: Final = 256


class DagCache:
    """Parsed DAGs by chain and version, which never change, so that one entry serves every run.

    It is shared by threads; at worst a race parses a DAG twice.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._lock = threading.Lock()
        self._read: FIFOCache[tuple[str, int], Dag] = FIFOCache(kept)

    def put(self, chain_id: str, version: int, document: Mapping[str, Any]) -> Dag:
        """Parse a DAG that was validated when it was defined, unless it is cached."""
        known = self.get(chain_id, version)
        if known is None:
            known = parse_validated_dag(expand_map_nodes(document))
            with self._lock:
                self._read[chain_id, version] = known
        return known

    def get(self, chain_id: str, version: int) -> Dag | None:
        with self._lock:  # ``get`` of cachetools fails if another thread evicts the entry in between
            return self._read.get((chain_id, version))

    async def load(self, tx: Tx, chain_id: str, version: int) -> Dag:
        """The DAG, from the cache or from its row."""
        known = self.get(chain_id, version)
        return known or self.put(chain_id, version, await definitions.find_dag(tx, chain_id, version))

    async def lock_limits(self, tx: Tx, chain_id: str) -> ChainLimits:
        """The current limits of a chain over its runs; the chain is locked until the transaction ends.

        They are those of the current version of the chain, so a changed limit also applies to runs that wait already.
        """
        version = await concurrency.lock_chain(tx, chain_id)
        return (await self.load(tx, chain_id, version)).chain_limits


class NodeTypes(Protocol):
    """The known node types (``chains.executor_registry``)."""

    def describe(self, type_name: str) -> object:
        """Refuse an unknown type."""
        ...

    def check(self, type_name: str, cfg: Any, *, place: str = "cfg", templated: bool = False) -> None:
        """Refuse an unknown type, or a cfg that its schema does not allow."""
        ...


def check_dag(document: Any, types: NodeTypes) -> Dag:
    """Parse and validate a DAG: structure, graph, rules, types, cfg and templates; all errors are reported at once."""
    return parse_dag(expand_map_nodes(document), node_checker(types), partial(_unknown, types))


def _unknown(types: NodeTypes, type_name: str) -> str | None:
    try:
        types.describe(type_name)
    except InvalidInput as error:
        return error.message.removeprefix("type: ")
    return None


def node_checker(types: NodeTypes) -> CheckNode:
    """The checks of a node's type and templates."""

    def check(node: Node) -> Iterable[str]:
        if node.type:
            try:
                types.check(node.type, dict(node.cfg), place="cfg", templated=True)
            except InvalidInput as error:
                yield error.message
        yield from _check_templates(node, _secret_fields(types, node.type))

    return check


def _secret_fields(types: NodeTypes, type_name: str) -> frozenset[str]:
    """The fields of a type's cfg that may refer to secrets."""
    try:
        described = types.describe(type_name)
    except InvalidInput:
        return frozenset()
    return frozenset(getattr(getattr(described, "factory", None), "secret_fields", ()))


def _check_templates(node: Node, secret_fields: frozenset[str]) -> Iterable[str]:
    try:
        yield from secrets.misplaced(dict(node.cfg), secret_fields)
        yield from secrets.literal_credentials(node.cfg, secret_fields)
    except InvalidInput:
        pass  # reported below
    names = {"parameters", "artifacts", "run", secrets.SECRETS} | (
        {node.map_spec.item} if node.map_spec is not None else set()
    )
    documents = [("cfg", node.cfg, names)]
    if node.map_spec is not None:
        documents.append(("map.over", node.map_spec.over, {"parameters", "artifacts", "run"}))
    for place, document, known in documents:
        try:
            found = list(templating.references(document, place))
        except InvalidInput as error:
            yield error.message
            continue
        for reference in found:
            root, *rest = reference.path
            if root not in known:
                yield f"{reference.place}: there is no {root!r} here; begin with {', '.join(sorted(known))}"
            elif root == "artifacts" and (not rest or rest[0] not in node.deps):
                seen = ", ".join(node.deps) or "it has none"
                yield f"{reference.place}: it can see artifacts of its deps only ({seen})"
