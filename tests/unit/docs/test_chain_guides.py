"""What the guides show works as it stands: every chain, every node, every class."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import yaml

from adjudge.chains import executor_registry
from adjudge.chains.dag_cache import check_dag
from adjudge.chains.definition_file import read_definition
from adjudge.chains.triggers import SPECS
from adjudge.chains.validation import check_cfg
from adjudge.domain.chain_parser import parse_dag
from tests.support.node_context import FakeNodeContext

GUIDES = Path(__file__).parents[3] / "docs" / "how-to"


def blocks(page: str, language: str) -> list[str]:
    """The blocks of a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (GUIDES / page).read_text(), re.DOTALL)


def whole(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """A DAG of nodes that were shown without what they depend on."""
    known = {node["id"] for node in nodes}
    missing = sorted({dep for node in nodes for dep in node.get("deps", ())} - known)
    return {"nodes": [*({"id": dep, "type": "noop"} for dep in missing), *nodes]}


def test_chains_and_nodes_that_are_shown_can_be_defined() -> None:
    shown = blocks("automate-with-chains.md", "yaml")
    files = [text for text in shown if "name:" in text and "dag:" in text]
    for text in files:
        definition = read_definition(text)
        check_dag(definition.dag, executor_registry.discover_executors())
        for trigger in definition.triggers:
            check_cfg(SPECS[trigger.kind], trigger.spec)
    fragments = [text for text in shown if text not in files]
    for text in fragments:
        check_dag(whole(yaml.safe_load(text)), executor_registry.discover_executors())
    assert (len(files), len(fragments)) == (3, 2)


def test_limits_that_are_shown_are_read() -> None:
    (text,) = (text for text in blocks("automate-with-chains.md", "yaml") if "over_runs" in text)
    dag = parse_dag(read_definition(text).dag)
    assert (dag.max_parallel, dag.chain_limits.max_runs, dag.chain_limits.max_parallel) == (8, 3, 20)


async def test_the_executor_that_is_shown_works(tmp_path: Path) -> None:
    (text,) = (text for text in blocks("write-an-executor.md", "python") if text.startswith("# greeter/"))
    module = tmp_path / "greeter.py"
    module.write_text(text)
    executor = runpy.run_path(str(module))["Greet"]()
    check_cfg(executor.cfg_schema, {"name": "Ada"})
    context = FakeNodeContext({"name": "Ada"})
    assert (await executor.execute(context)).artifact == {"text": "Hello, Ada!"}
    assert context.lines == ["Hello, Ada!"]
