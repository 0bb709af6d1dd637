"""Applying chains from files, and executors that are carried out twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.chains import builtin, executor_registry
from adjudge.chains.apply import Applicant, ChainApplyResult, apply
from adjudge.chains.definition_file import read_definition
from adjudge.chains.executor import NodeWaiting
from adjudge.chains.triggers import TriggerCommands
from adjudge.domain.errors import InvalidInput
from adjudge.store.chains import definitions
from adjudge.store.chains import triggers as chain_triggers
from tests.support.chain_fixture import ChainInstallation, open_chain_installation, zip_folder
from tests.support.node_context import context_for
from tests.support.store_harness import StoreHarness

FILE = """
name: greet
description: Says hello.
dag:
  nodes: [{id: hello, type: noop}]
triggers:
  - {name: nightly, kind: cron, spec: {cron: "0 3 * * *"}}
  - {name: hook, kind: webhook, spec: {}}
"""


async def applied(store: StoreHarness, text: str) -> ChainApplyResult:
    definition = read_definition(text)
    return await store.transact(
        lambda tx: apply(tx, definition, executor_registry.discover_executors(), TriggerCommands(), by=Applicant("eva"))
    )


async def test_files_are_applied_as_often_as_one_likes(store: StoreHarness) -> None:
    first = await applied(store, FILE)
    assert (first.outcome, first.version) == ("created", 1)
    assert first.triggers == {"nightly": "created", "hook": "created"}
    assert list(first.secrets) == ["hook"]
    again = await applied(store, FILE)
    assert (again.outcome, again.version, again.chain_id) == ("unchanged", 1, first.chain_id)
    assert set(again.triggers.values()) == {"unchanged"}
    assert again.secrets == {}
    changed = await applied(store, FILE.replace("type: noop", "type: noop, cfg: {artifact: 1}").replace("0 3", "0 4"))
    assert (changed.outcome, changed.version) == ("changed", 2)
    assert changed.triggers == {"nightly": "changed", "hook": "unchanged"}
    fewer = await applied(store, FILE.partition("triggers:")[0])
    assert fewer.triggers == {"nightly": "removed", "hook": "removed"}


async def test_what_somebody_switched_off_stays_off(store: StoreHarness) -> None:
    first = await applied(store, FILE)
    await store.transact(lambda tx: definitions.set_enabled(tx, first.chain_id, enabled=False, actor="eva"))
    (nightly,) = [
        item
        for item in await store.transact(lambda tx: chain_triggers.list_by_chain(tx, first.chain_id))
        if item.kind == "cron"
    ]
    await store.transact(lambda tx: TriggerCommands().update(tx, nightly.id, version=nightly.version, enabled=False))
    await applied(store, FILE.replace("type: noop", "type: noop, cfg: {artifact: 1}").replace("0 3", "0 4"))
    assert not (await store.transact(lambda tx: definitions.find(tx, first.chain_id))).enabled
    assert not (await store.transact(lambda tx: chain_triggers.find(tx, nightly.id))).enabled


async def test_a_wrong_file_changes_nothing(store: StoreHarness) -> None:
    with pytest.raises(InvalidInput, match="unknown node type 'nope'"):
        await applied(store, FILE.replace("noop", "nope"))
    with pytest.raises(InvalidInput, match=r"spec\.cron"):
        await applied(store, FILE.replace("0 3 * * *", "at three"))
    with pytest.raises(InvalidInput, match=r'chain\.name: "\.\." cannot be used: must not contain slashes'):
        await applied(store, FILE.replace("name: greet", 'name: ".."'))
    assert await store.rows("SELECT id FROM chains") == []


@pytest.mark.parametrize("name", builtin.list_builtin())
async def test_shipped_chains_can_be_applied(store: StoreHarness, name: str) -> None:
    assert (await applied(store, builtin.read_builtin(name))).outcome == "created"
    assert (await applied(store, builtin.read_builtin(name))).outcome == "unchanged"


# ---- twice: what a crash between the work and its end does


@pytest.fixture
async def chain_installation(sqlite_url: str, tmp_path: Path) -> AsyncIterator[ChainInstallation]:
    async with open_chain_installation(sqlite_url, tmp_path, tmp_path / "compiled") as chain_installation:
        yield chain_installation


async def twice(
    chain_installation: ChainInstallation, type_name: str, cfg: dict[str, Any], **fields: Any
) -> tuple[Any, Any]:
    """What an executor says when it is carried out, and carried out again as another attempt after a crash."""
    executor = chain_installation.executors[type_name]
    context = context_for(type_name, cfg, authority=chain_installation.authority, **fields)
    first = await executor.execute(context)
    context.attempt += 1
    return first, await executor.execute(context)


async def test_what_is_carried_out_twice_is_done_once(chain_installation: ChainInstallation) -> None:
    example = Path(__file__).parents[3] / "examples" / "problems" / "shout"
    digest = await chain_installation.blobs.put(zip_folder(example))
    make = {"package": digest, "problem": "shout"}
    one, two = await twice(chain_installation, "problem.generate", make)
    assert one == two
    publish = {"revision_id": one.artifact["revision_id"]}
    one, two = await twice(chain_installation, "problem.publish", publish)
    assert one.artifact["number"] == two.artifact["number"] == 1
    judge = {"problem": "shout", "language": "python3", "source": "print(1)"}
    one, two = await twice(chain_installation, "judge", judge)
    assert isinstance(one, NodeWaiting)
    assert one == two
    chain_id = await chain_installation.define("inner", {"nodes": [{"id": "n", "type": "noop"}]})
    run_id = await chain_installation.start(chain_id)
    one, two = await twice(chain_installation, "chain", {"chain": "inner"}, run_id=run_id)
    assert isinstance(one, NodeWaiting)
    assert one == two
    one, two = await twice(chain_installation, "sleep", {"seconds": 60})
    assert one.until_ms == two.until_ms
