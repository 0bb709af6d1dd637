"""Parses a DAG from its JSON document and reports all problems at once, each with its path.

::

    {"nodes": [{"id", "type", "deps", "cfg", "retry": {"max_attempts", "backoff_ms"}, "timeout_ms", "when", "if",
                "map": {"over", "as", "max_parallel"}, "priority"}],
     "max_parallel": 8, "max_parallel_by_type": {"sandbox": 2},
     "over_runs": {"max_runs": 3, "when_full": "wait", "max_parallel": 20, "max_parallel_by_type": {"http": 4}}}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from adjudge.domain import chain_condition
from adjudge.domain.chain import ChainLimits, Dag, DependencyRule, MapSpec, MaxRunsPolicy, Node, NodeRetry
from adjudge.domain.chain_condition import Condition
from adjudge.domain.errors import InvalidInput
from adjudge.domain.priority import DEFAULT_BAND, LOWEST_BAND
from adjudge.domain.strict_json import encode_json

MAX_NODES: Final = 20_000
MAX_ATTEMPTS: Final = 100
MAX_RUNS: Final = 100_000
MAX_TIMEOUT_MS: Final = 30 * 86_400_000

_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_TYPE: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_DAG_KEYS: Final = frozenset({"nodes", "max_parallel", "max_parallel_by_type", "over_runs"})
_OVER_RUNS_KEYS: Final = frozenset({"max_runs", "when_full", "max_parallel", "max_parallel_by_type"})
_NODE_KEYS: Final = frozenset(
    {"id", "type", "deps", "cfg", "retry", "timeout_ms", "when", "if", "map", "priority"},
)
_ROOTS: Final = frozenset({"artifacts", "parameters"})

CheckNode = Callable[[Node], Iterable[str]]
"""Returns the problems of a node's type and cfg, each with its path: ``cfg.url: …``."""


CheckType = Callable[[str], str | None]
"""Returns the problem with a type named in ``max_parallel_by_type``, if any."""


def parse_dag(document: Any, check: CheckNode | None = None, check_type: CheckType | None = None) -> Dag:
    """Parse and validate a DAG; all problems are reported in one InvalidInput."""
    reader = _DagParser()
    try:
        encode_json(document, "dag")
    except InvalidInput as error:
        reader.problems.append(error.message)
    dag = reader.dag(document)
    if check is not None:
        for node in dag.nodes:
            reader.problems += [f"node {node.id!r}: {problem}" for problem in check(node)]
    if check_type is not None:
        for path, limits in (("", dag.max_parallel_by_type), ("over_runs.", dag.chain_limits.max_parallel_by_type)):
            result = map(check_type, limits)
            reader.problems += [f"{path}max_parallel_by_type: {problem}" for problem in result if problem]
    if reader.problems:
        text = " ".join(_sentence(problem) for problem in reader.problems)
        raise InvalidInput(text, field="dag", problems=list(reader.problems))
    return dag


def parse_validated_dag(document: Mapping[str, Any]) -> Dag:
    """Parse a DAG that was validated when it was saved."""
    return _DagParser().dag(document)


def _sentence(problem: str) -> str:
    return problem if problem.endswith((".", "!", "?")) else problem + "."


class _DagParser:
    """Collects problems while parsing; its result is valid only if there are none."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def _report(self, path: str, problem: str) -> None:
        self.problems.append(f"{path}: {problem}")

    def dag(self, document: Any) -> Dag:
        if not isinstance(document, Mapping):
            self._report("dag", 'must be an object like {"nodes": […]}; dag must have nodes')
            return Dag(())
        self._unknown_keys("dag", document, _DAG_KEYS)
        listed = document.get("nodes")
        if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
            self._report("nodes", "dag must have nodes: must be a non-empty list")
            return Dag(())
        if len(listed) > MAX_NODES:
            self._report("nodes", f"{len(listed)} nodes are more than {MAX_NODES}; split the chain into sub-chains")
            return Dag(())
        nodes = tuple(node for index, item in enumerate(listed) if (node := self._node(index, item)) is not None)
        dag = Dag(nodes, *self._limits("", document), self._over_runs(document.get("over_runs")))
        self._check_graph(nodes)
        return dag

    def _limits(self, path: str, fields: Mapping[str, Any]) -> tuple[int | None, Mapping[str, int]]:
        """The limits on concurrent nodes, in total and per type."""
        types = self._object(f"{path}max_parallel_by_type", fields.get("max_parallel_by_type", {}))
        return self._integer(f"{path}max_parallel", fields.get("max_parallel"), 1, MAX_NODES), {
            name: self._integer(f"{path}max_parallel_by_type.{name}", limit, 1, MAX_NODES) or 1
            for name, limit in types.items()
        }

    def _over_runs(self, value: Any) -> ChainLimits:
        if value is None:
            return ChainLimits()
        fields = self._object("over_runs", value)
        self._unknown_keys("over_runs", fields, _OVER_RUNS_KEYS)
        max_runs = self._integer("over_runs.max_runs", fields.get("max_runs"), 1, MAX_RUNS)
        when = fields.get("when_full", MaxRunsPolicy.WAIT)
        if not isinstance(when, str) or when not in MaxRunsPolicy._value2member_map_:
            self._report("over_runs.when_full", f"{when!r} is unknown; use one of {', '.join(MaxRunsPolicy)}")
            when = MaxRunsPolicy.WAIT
        elif "when_full" in fields and "max_runs" not in fields:
            self._report("over_runs.when_full", "when_full requires max_runs")
        return ChainLimits(max_runs, MaxRunsPolicy(when), *self._limits("over_runs.", fields))

    def _unknown_keys(self, path: str, document: Mapping[str, Any], known: frozenset[str]) -> None:
        for key in document:
            if key not in known:
                self._report(path, f"{key!r} is unknown; known keys: {', '.join(sorted(known))}")

    def _node(self, index: int, item: Any) -> Node | None:
        path = f"nodes[{index}]"
        if not isinstance(item, Mapping):
            self._report(path, "must be an object with an id and a type")
            return None
        node_id = item.get("id")
        if not isinstance(node_id, str) or not _ID.fullmatch(node_id):
            self._report(f"{path}.id", f"invalid id {node_id!r}: must be 1 to 64 letters, digits, '_' and '-'")
            return None
        path = f"node {node_id!r}"
        self._unknown_keys(path, item, _NODE_KEYS)
        deps = self._deps(path, item.get("deps"))
        return Node(
            id=node_id,
            type=self._type(path, item.get("type")),
            deps=deps,
            cfg=self._object(f"{path}: cfg", item.get("cfg") or {}),
            retry=self._retry(f"{path}: retry", item.get("retry")),
            timeout_ms=self._integer(f"{path}: timeout_ms", item.get("timeout_ms"), 1, MAX_TIMEOUT_MS),
            when=self._when(path, item.get("when"), deps),
            condition=self._condition(path, item.get("if"), deps),
            map_spec=self._map_spec(f"{path}: map", item.get("map")),
            priority=self._priority(path, item.get("priority")),
        )

    def _type(self, path: str, value: Any) -> str:
        if not isinstance(value, str) or not _TYPE.fullmatch(value):
            self._report(path, f"type must be a name like 'noop', not {value!r}")
            return ""
        return value

    def _deps(self, path: str, value: Any) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(dep, str) for dep in value):
            self._report(path, f"deps must be a list of node ids, not {value!r}")
            return ()
        for dep, times in Counter(value).items():
            if times > 1:
                self._report(path, f"depends on {dep!r} {times} times; list it once")
        return tuple(value)

    def _when(self, path: str, value: Any, deps: tuple[str, ...]) -> DependencyRule:
        if value is None:
            return DependencyRule.ALL_SUCCESS
        if not isinstance(value, str) or value not in DependencyRule._value2member_map_:
            self._report(path, f"when {value!r} is unknown; use one of {', '.join(DependencyRule)}")
            return DependencyRule.ALL_SUCCESS
        when = DependencyRule(value)
        if not deps and when in (DependencyRule.ONE_SUCCESS, DependencyRule.ONE_FAILED):
            self._report(path, f"when {when} requires deps")
        return when

    def _condition(self, path: str, value: Any, deps: tuple[str, ...]) -> Condition | None:
        if value is None:
            return None
        if not isinstance(value, str):
            self._report(path, f"if must be an expression in a string, not {value!r}")
            return None
        try:
            condition = chain_condition.parse_condition(value)
        except InvalidInput as error:
            self._report(path, f"if: {error.message}")
            return None
        for reference in condition.paths:
            if reference[0] not in _ROOTS:
                self._report(path, f"if: unknown name {reference[0]!r}; paths start with artifacts or parameters")
            elif reference[0] == "artifacts" and (len(reference) < 2 or reference[1] not in deps):
                self._report(path, f"if: only artifacts of its deps are available ({', '.join(deps) or 'none'})")
        return condition

    def _retry(self, path: str, value: Any) -> NodeRetry:
        if value is None:
            return NodeRetry()
        fields = self._object(path, value)
        self._unknown_keys(path, fields, frozenset({"max_attempts", "backoff_ms"}))
        attempts = self._integer(f"{path}.max_attempts", fields.get("max_attempts"), 1, MAX_ATTEMPTS)
        backoff = self._integer(f"{path}.backoff_ms", fields.get("backoff_ms"), 0, 86_400_000)
        usual = NodeRetry()
        return NodeRetry(
            usual.max_attempts if attempts is None else attempts, usual.backoff_ms if backoff is None else backoff
        )

    def _map_spec(self, path: str, value: Any) -> MapSpec | None:
        if value is None:
            return None
        fields = self._object(path, value)
        self._unknown_keys(path, fields, frozenset({"over", "as", "max_parallel"}))
        over, name = fields.get("over"), fields.get("as", "item")
        if not isinstance(over, list) and not (isinstance(over, str) and "{{" in over):
            self._report(f"{path}.over", "must be a list, or a template like {{ artifacts.tests.names }}")
        if not isinstance(name, str) or not _ID.fullmatch(name) or name in {*_ROOTS, "run"}:
            self._report(f"{path}.as", f"{name!r} is not a valid item name")
        return MapSpec(over, str(name), self._integer(f"{path}.max_parallel", fields.get("max_parallel"), 1, MAX_NODES))

    def _priority(self, path: str, value: Any) -> int:
        number = self._integer(f"{path}: priority", value, 0, LOWEST_BAND)
        return DEFAULT_BAND if number is None else number

    def _object(self, path: str, value: Any) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return value
        self._report(path, f"must be an object, not {value!r}")
        return {}

    def _integer(self, path: str, value: Any, minimum: int, maximum: int) -> int | None:
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        self._report(path, f"must be an integer from {minimum} to {maximum}, not {value!r}")
        return None

    def _check_graph(self, nodes: Sequence[Node]) -> None:
        known = Counter(node.id for node in nodes)
        for node_id, times in known.items():
            if times > 1:
                self._report(f"node {node_id!r}", f"duplicate id: {times} nodes have it; rename all but one")
        for node in nodes:
            for dep in node.deps:
                if dep not in known:
                    self._report(f"node {node.id!r}", f"unknown dependency {dep!r}: no node has that id")
        cycle = find_cycle({node.id: [dep for dep in node.deps if dep in known] for node in nodes})
        if cycle:
            self._report("nodes", f"dependency cycle: {' → '.join(cycle)}")


def find_cycle(deps: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Find a cycle: node ids from a node through its dependents back to itself."""
    done: set[str] = set()
    for start in deps:
        path: dict[str, None] = {}
        stack = [(start, iter(deps[start]))]
        while stack and start not in done:
            node, rest = stack[-1]
            path[node] = None
            following = next((dep for dep in rest if dep not in done), None)
            if following is None:
                done.add(node)
                path.pop(node)
                stack.pop()
            elif following in path:
                walked = list(path)
                return [*walked[walked.index(following) :], following][::-1]
            else:
                stack.append((following, iter(deps[following])))
    return None
