"""``check_dag``: node types, cfg by schema, and the values that templates can use."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.chains.dag_cache import DagCache, check_dag
from adjudge.domain.errors import InvalidInput


class Types:
    """A registry of two types: ``noop``, and ``count``, whose cfg needs a number ``n``."""

    def describe(self, type_name: str) -> object:
        if type_name not in ("noop", "count"):
            raise InvalidInput(f"type: there is no executor {type_name!r}")
        return type_name

    def check(self, type_name: str, cfg: Any, *, place: str = "cfg", templated: bool = False) -> None:
        assert templated
        self.describe(type_name)
        if type_name == "count" and not isinstance(cfg.get("n"), int | str):
            raise InvalidInput(f"{place}.n: must be a number")


def problems(*nodes: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        check_dag({"nodes": list(nodes)}, Types())
    found = refused.value.fields["problems"]
    assert isinstance(found, list)
    return found


def test_all_errors_are_reported_together() -> None:
    found = problems(
        {"id": "a", "type": "ghost"},
        {"id": "b", "type": "count", "cfg": {}, "deps": ["z"]},
    )
    assert sorted(found) == [
        "node 'a': type: there is no executor 'ghost'",
        "node 'b': cfg.n: must be a number",
        "node 'b': unknown dependency 'z': no node has that id",
    ]


def test_limit_of_an_unknown_type_is_refused() -> None:
    limits = {"noop": 1, "ghots": 2}
    document = {"nodes": [{"id": "a", "type": "noop"}], "max_parallel_by_type": limits}
    for given, place in ((document, ""), ({**document, "over_runs": {"max_parallel_by_type": limits}}, "over_runs.")):
        with pytest.raises(InvalidInput, match=f"{place}max_parallel_by_type: there is no executor 'ghots'"):
            check_dag(given, Types())


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cfg": {"x": "{{ artifacts.a.y }}"}}, None),
        ({"cfg": {"x": "{{ parameters.y ?? 3 }}"}}, None),
        ({"cfg": {"x": "{{ artifacts.c.y }}"}}, "cfg.x: it can see artifacts of its deps only (a)"),
        ({"cfg": {"x": ["{{ item }}"]}}, "cfg.x[0]: there is no 'item' here; begin with artifacts, parameters"),
        ({"cfg": {"x": "{{ item }}"}, "map": {"over": [1]}}, None),
        ({"cfg": {"x": "{{ name }}"}, "map": {"over": [1], "as": "name"}}, None),
        ({"map": {"over": "{{ artifacts.z }}"}}, "map.over: it can see artifacts of its deps only (a)"),
        ({"cfg": {"x": "{{ a b }}"}}, "cannot be read"),
    ],
)
def test_templates_use_artifacts_of_dependencies_only(fields: dict[str, Any], error: str | None) -> None:
    nodes = [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop", "deps": ["a"], **fields}]
    if error is None:
        check_dag({"nodes": nodes}, Types())
    else:
        (found,) = problems(*nodes)
        assert error in found


def test_dag_is_parsed_once_and_the_oldest_is_evicted() -> None:
    dags = DagCache(kept=2)
    first = dags.put("chain", 1, {"nodes": [{"id": "a", "type": "noop"}]})
    assert dags.put("chain", 1, {}) is first is dags.get("chain", 1)
    dags.put("chain", 2, {"nodes": [{"id": "a", "type": "noop"}]})
    dags.put("other", 1, {"nodes": [{"id": "a", "type": "noop"}]})
    assert dags.get("chain", 1) is None
