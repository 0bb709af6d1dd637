"""Executors are found by entry point; a broken one disables itself and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.chains import executor_registry
from adjudge.chains.executor import Executor
from adjudge.chains.executor_registry import ExecutorRegistry
from adjudge.chains.validation import check_cfg, check_rendered
from adjudge.domain.errors import InvalidInput
from tests.support import node_context
from tests.support.node_context import FakeNodeContext

PLUGIN = Path(node_context.__file__).parent / "example_plugin"
OURS = {"noop", "sleep", "http", "sandbox", "judge", "problem.verify", "problem.publish", "wait_approval", "chain"}


@pytest.fixture
def with_example_plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExecutorRegistry]:
    """The registry as it is once a third party's package is installed."""
    monkeypatch.syspath_prepend(PLUGIN)
    yield executor_registry.discover_executors()
    sys.modules.pop("example_plugin", None)


def test_ours_are_registered_and_all_of_them_work() -> None:
    found = executor_registry.discover_executors()
    assert set(found.types()) >= OURS
    assert {name for name, item in found.executors.items() if item.distribution == "adjudge"} >= OURS
    assert found.disabled == {}
    for described in found.executors.values():
        assert described.summary, described.type
        assert described.cfg_schema.get("additionalProperties") is False, f"{described.type} would swallow misspellings"


async def test_a_third_partys_executor_works(with_example_plugin: ExecutorRegistry) -> None:
    assert with_example_plugin.executors["greet"].distribution == "adjudge-example-plugin"
    with_example_plugin.check("greet", {"name": "{{ parameters.who }}"}, templated=True)
    executor: Executor = with_example_plugin.build({"greeting": "Servus", "unused": 1})["greet"]
    context = FakeNodeContext({"name": "Ada"})
    result = await executor.execute(context)
    assert getattr(result, "artifact", None) == {"text": "Servus, Ada!"}
    assert context.lines == ["Servus, Ada!"]


def test_broken_ones_disable_themselves_with_a_reason(with_example_plugin: ExecutorRegistry) -> None:
    assert set(with_example_plugin.disabled) == {"missing", "misnamed", "invalid_schema"}
    assert "No module named 'example_plugin.nowhere'" in with_example_plugin.disabled["missing"].reason
    assert "entry point is named 'misnamed'" in with_example_plugin.disabled["misnamed"].reason
    assert "no JSON Schema" in with_example_plugin.disabled["invalid_schema"].reason
    with pytest.raises(InvalidInput, match="the executor 'missing' is disabled: adjudge-example-plugin"):
        with_example_plugin.check("missing", {})


def test_nobody_takes_our_types(with_example_plugin: ExecutorRegistry) -> None:
    assert with_example_plugin.executors["noop"].distribution == "adjudge"


def test_one_that_cannot_be_built_is_left_out(with_example_plugin: ExecutorRegistry) -> None:
    built = with_example_plugin.build({})
    assert "unknown_dependency" not in built
    assert {"noop", "greet"} <= set(built)


def test_unknown_types_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"unknown node type 'nope'; available: chain, .*noop"):
        executor_registry.discover_executors().check("nope", {})


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "pattern": "^https://"},
        "tries": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["fast", "slow"]},
        "stdin": {"oneOf": [{"type": "string", "maxLength": 3}, {"type": "object", "required": ["blob"]}]},
        "list": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["url"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        ({}, "cfg: 'url' is missing"),
        ({"url": 3}, "cfg.url: 3 cannot be used: it must be a text"),
        ({"url": "http://x"}, "it must match \\^https"),
        ({"url": "https://x", "tires": 3}, "there is no 'tires'; did you mean 'tries'"),
        ({"url": "https://x", "tries": 0}, "cfg.tries: 0 cannot be used: at least 1"),
        ({"url": "https://x", "mode": "warp"}, "choose one of fast, slow"),
        ({"url": "https://x", "stdin": "long"}, "fits none of the ways"),
        ({"url": "https://x", "list": [1, "2"]}, r"cfg.list\[1\]: \"2\" cannot be used: it must be a whole number"),
    ],
)
def test_a_wrong_cfg_is_refused_by_its_place(cfg: dict[str, Any], message: str) -> None:
    for templated in (False, True):
        with pytest.raises(InvalidInput, match=message):
            check_cfg(SCHEMA, cfg, templated=templated)


def test_templates_pass_for_anything_until_they_are_filled_in() -> None:
    cfg = {
        "url": "{{ parameters.url }}",
        "tries": "{{ parameters.tries }}",
        "mode": "{{ parameters.mode }}",
        "stdin": "{{ artifacts.x }}",
        "list": ["{{ item }}", 2],
    }
    check_cfg(SCHEMA, cfg, templated=True)
    with pytest.raises(InvalidInput) as refused:
        check_cfg(SCHEMA, cfg)
    for place in ("cfg.url", "cfg.tries", "cfg.mode", "cfg.stdin", "cfg.list[0]"):
        assert place in refused.value.message


def test_templates_do_not_excuse_what_stands_beside_them() -> None:
    with pytest.raises(InvalidInput, match="did you mean 'tries'"):
        check_cfg(SCHEMA, {"url": "{{ parameters.url }}", "tires": "{{ parameters.tries }}"}, templated=True)


def test_a_cfg_that_was_found_sound_does_not_speak_for_another_schema_or_another_value() -> None:
    constant, templated = {"url": "https://x"}, {"url": "{{ parameters.url }}"}
    for _ in range(2):
        check_rendered(SCHEMA, constant, dict(constant))
        check_rendered(SCHEMA, templated, {"url": "https://x"})
        with pytest.raises(InvalidInput, match="it must match"):
            check_rendered(SCHEMA, templated, {"url": "http://x"})
        with pytest.raises(InvalidInput, match="it must match"):
            check_rendered(SCHEMA, constant, {"url": "http://x"})
        with pytest.raises(InvalidInput, match="'tries' is missing"):
            check_rendered({**SCHEMA, "required": ["tries"]}, constant, dict(constant))
