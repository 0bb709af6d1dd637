"""Executors in a complete installation: engine, sandbox and database are real."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from adjudge.chains import builtin
from adjudge.chains.approval import answer_approval
from adjudge.chains.executor import NodeWaiting
from adjudge.chains.triggers import TriggerCommands
from adjudge.domain.authority import Authority, Grant
from adjudge.domain.errors import Conflict, InvalidInput
from adjudge.domain.ids import new_id
from adjudge.domain.states import ChainRunStatus, NodeStatus
from adjudge.store.accounts import users
from adjudge.store.chains import queries as chain_queries
from adjudge.store.chains.models import ChainRunRow, NewChainRun
from adjudge.store.engine.statement import Statement
from adjudge.store.problems import queries as problem_queries
from tests.support.chain_fixture import ChainInstallation, zip_folder
from tests.support.node_context import context_for
from tests.support.problem_packages import write_generated_package

PROBLEMS = Path(__file__).parents[3] / "examples" / "problems"


def dag(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": [{"retry": {"max_attempts": 1}, **node} for node in nodes]}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "made"), [("shout", 0), ("double", 1)])
async def test_the_problem_pipeline_takes_a_package_to_publication(
    system: ChainInstallation, tmp_path: Path, name: str, made: int
) -> None:
    digest = await system.blobs.put(zip_folder(write_generated_package(tmp_path / name) if made else PROBLEMS / name))
    run_id = await system.start(
        await system.apply(builtin.load_builtin("problem-pipeline")), package=digest, problem=name
    )
    asked = await system.wait_for_node(run_id, "approve", lambda node: node.wait_on == "approval")
    nodes = await system.nodes(run_id)
    table = nodes["verify"].artifact
    assert table["ok"]
    assert all(row["ok"] for row in table["submissions"])
    assert len(table["submissions"]) == nodes["check"].artifact["submissions"]
    assert (nodes["check"].artifact["to_be_made"], nodes["generate"].artifact["made"]) == (made, made)
    assert asked.artifact["question"].startswith(f"Publish revision 1 of {name}")
    problem = await system.database.read(lambda tx: problem_queries.find(tx, name))
    assert problem is not None
    assert problem.published_revision_id is None
    await system.database.transact(
        lambda tx: answer_approval(
            tx,
            system.engine.resume,
            run_id=run_id,
            node_id="approve",
            approved=True,
            actor="eva",
            reason="looks good",
        )
    )
    assert (await system.wait_finished(run_id)).status is ChainRunStatus.SUCCESS
    published = await system.database.read(lambda tx: problem_queries.find(tx, name))
    assert published is not None
    assert published.published_revision_id == nodes["generate"].artifact["revision_id"]
    assert (await system.nodes(run_id))["approve"].artifact == {
        "approved": True,
        "by": "eva",
        "by_id": "eva",
        "reason": "looks good",
    }


async def publish(system: ChainInstallation, name: str, folder: Path | None = None) -> str:
    """A published problem; return the revision's id."""
    digest = await system.blobs.put(zip_folder(folder or PROBLEMS / name))
    chain = dag(
        {"id": "make", "type": "problem.generate", "cfg": {"package": digest, "problem": name}},
        {
            "id": "publish",
            "type": "problem.publish",
            "deps": ["make"],
            "cfg": {"revision_id": "{{ artifacts.make.revision_id }}"},
        },
    )
    run, nodes = await system.run(chain)
    assert run.status is ChainRunStatus.SUCCESS, {node.node_id: node.last_error for node in nodes.values()}
    revision_id: str = nodes["make"].artifact["revision_id"]
    return revision_id


async def wait_for_first_run(system: ChainInstallation, chain_id: str) -> ChainRunRow:
    """The first run of a chain, as soon as there is one."""
    async with asyncio.timeout(240):
        while not (found := await system.database.read(lambda tx: chain_queries.page_runs(tx, chain_id=chain_id))):
            await asyncio.sleep(0.01)
    return found[0]


@pytest.mark.slow
async def test_judging_waits_for_the_verdict_without_a_worker(system: ChainInstallation) -> None:
    revision_id = await publish(system, "shout")
    right = (PROBLEMS / "shout/submissions/accepted/swap.py").read_text()
    wrong = await system.blobs.put((PROBLEMS / "shout/submissions/wrong_answer/shouts_only.py").read_bytes())
    run, nodes = await system.run(
        dag(
            {"id": "right", "type": "judge", "cfg": {"problem": "shout", "language": "python3", "source": right}},
            {
                "id": "wrong",
                "type": "judge",
                "cfg": {
                    "problem": "shout",
                    "revision_id": revision_id,
                    "language": "python3",
                    "source_digest": wrong,
                    "user": "eva",
                },
            },
            {"id": "if_right", "type": "noop", "deps": ["right"], "if": 'artifacts.right.verdict == "AC"'},
            {"id": "if_wrong", "type": "noop", "deps": ["wrong"], "if": 'artifacts.wrong.verdict == "AC"'},
        )
    )
    assert run.status is ChainRunStatus.SUCCESS
    assert (nodes["right"].artifact["verdict"], nodes["wrong"].artifact["verdict"]) == ("AC", "WA")
    assert nodes["right"].artifact["time_ms"] is not None
    assert (nodes["if_right"].status, nodes["if_wrong"].status) == (NodeStatus.SUCCESS, NodeStatus.SKIPPED)


@pytest.mark.slow
async def test_publishing_tells_the_triggers(system: ChainInstallation) -> None:
    chain_id = await system.define(
        "after", dag({"id": "say", "type": "noop", "cfg": {"artifact": "{{ parameters.slug }}"}})
    )
    spec = {"event": "problem.published", "parameters": {"slug": "{{ event.slug }}"}}
    await system.database.transact(
        lambda tx: TriggerCommands().create(
            tx,
            chain_id=chain_id,
            name="t",
            kind="event",
            spec=spec,
            actor="eva",
            authority=system.authority,
        )
    )
    await publish(system, "shout")

    run = await wait_for_first_run(system, chain_id)
    assert (await system.wait_finished(run.id)).trigger_kind == "event"
    assert (await system.node(run.id, "say")).artifact == "shout"


async def test_a_broken_package_is_refused_with_its_findings(system: ChainInstallation) -> None:
    digest = await system.blobs.put(zip_folder(PROBLEMS / "shout")[:-30])
    run, nodes = await system.run(dag({"id": "check", "type": "problem.check", "cfg": {"package": digest}}))
    assert run.status is ChainRunStatus.FAILED
    assert "cannot be used" in (nodes["check"].last_error or "")


async def test_programs_run_in_the_box(system: ChainInstallation) -> None:
    digest = await system.blobs.put(b"from the store\n")
    code = "import sys; t = open('a.txt').read() + sys.stdin.read(); print(t, end='')"
    code += "; open('out.txt', 'w').write(t.upper())"
    run, nodes = await system.run(
        dag(
            {
                "id": "run",
                "type": "sandbox",
                "cfg": {
                    "argv": ["/usr/bin/python3", "-c", code],
                    "stdin": {"blob": digest},
                    "files": [{"name": "a.txt", "text": "inline\n"}],
                    "collect": ["out.txt", "missing.txt"],
                    "limits": {"cpu_ms": 5000, "memory_mib": 128},
                },
            },
            {
                "id": "again",
                "type": "sandbox",
                "deps": ["run"],
                "cfg": {
                    "argv": ["/usr/bin/python3", "-c", "print(open('b').read(), end='')"],
                    "files": [{"name": "b", "blob": '{{ artifacts.run.files["out.txt"].digest }}'}],
                },
            },
            {
                "id": "fails",
                "type": "sandbox",
                "cfg": {"argv": ["/usr/bin/python3", "-c", "raise SystemExit(3)"], "check": False},
            },
            {"id": "fatal", "type": "sandbox", "cfg": {"argv": ["/usr/bin/python3", "-c", "1 / 0"]}},
        )
    )
    assert run.status is ChainRunStatus.FAILED
    first = nodes["run"].artifact
    assert (first["verdict"], first["stdout"], list(first["files"])) == ("OK", "inline\nfrom the store\n", ["out.txt"])
    assert first["memory_kb"] > 0
    assert nodes["again"].artifact["stdout"] == "INLINE\nFROM THE STORE\n"
    assert (nodes["fails"].artifact["exit_code"], nodes["fails"].status) == (3, NodeStatus.SUCCESS)
    assert "ZeroDivisionError" in (nodes["fatal"].last_error or "")
    assert nodes["fatal"].attempt == 1


async def test_sleep_holds_no_worker_and_stops(system: ChainInstallation) -> None:
    many = [{"id": f"s{n}", "type": "sleep", "cfg": {"seconds": 0.05}} for n in range(6)]
    run, nodes = await system.run(dag(*many))
    assert run.status is ChainRunStatus.SUCCESS
    assert all("until_ms" in node.artifact for node in nodes.values())
    run_id = await system.start(
        await system.define("long", dag({"id": "s", "type": "sleep", "cfg": {"seconds": 3600}}))
    )
    await system.wait_for_node(run_id, "s", lambda node: node.wait_on == "timer")
    await system.database.transact(lambda tx: system.engine.stop(tx, run_id, actor="eva", reason="enough"))
    assert (await system.wait_finished(run_id)).status is ChainRunStatus.STOPPED


async def test_chains_start_chains(system: ChainInstallation) -> None:
    inner = dag({"id": "x", "type": "noop", "cfg": {"artifact": "{{ parameters.n }}"}})
    await system.define("inner", inner)
    await system.define("bad", dag({"id": "x", "type": "sandbox", "cfg": {"argv": ["/usr/bin/false"]}}))
    cfg = {"chain": "inner", "parameters": {"n": "{{ item }}"}}
    run, nodes = await system.run(
        dag(
            {"id": "one", "type": "chain", "cfg": {**cfg, "parameters": {"n": 1}}},
            {"id": "each", "type": "map", "cfg": {"over": [1, 2, 3], **cfg}},
            {"id": "forget", "type": "chain", "cfg": {"chain": "bad", "wait": False}},
            {"id": "join", "type": "noop", "deps": ["each"], "cfg": {"artifact": "{{ artifacts.each }}"}},
            {"id": "self", "type": "noop", "cfg": {"artifact": "{{ run.id }}/{{ run.node }}"}},
        )
    )
    assert run.status is ChainRunStatus.SUCCESS, {node.node_id: node.last_error for node in nodes.values()}
    assert nodes["self"].artifact == f"{run.id}/self"
    child = nodes["one"].artifact["run_id"]
    assert (await system.node(child, "x")).artifact == 1
    assert len({item["run_id"] for item in nodes["join"].artifact}) == 3
    run, nodes = await system.run(dag({"id": "bad", "type": "chain", "cfg": {"chain": "bad"}}))
    assert (run.status, nodes["bad"].status) == (ChainRunStatus.FAILED, NodeStatus.FAILED)
    run, nodes = await system.run(dag({"id": "gone", "type": "chain", "cfg": {"chain": "nowhere"}}))
    assert "Not found: chain 'nowhere'" in (nodes["gone"].last_error or "")


async def test_a_chain_after_a_chain(system_on_both: ChainInstallation) -> None:
    system = system_on_both
    first = await system.define("first", dag({"id": "n", "type": "noop"}))
    second = await system.define(
        "second", dag({"id": "n", "type": "noop", "cfg": {"artifact": "{{ parameters.run }}"}})
    )
    spec = {"chain_id": first, "on": "any", "parameters": {"run": "{{ event.run_id }}"}}
    await system.database.transact(
        lambda tx: TriggerCommands().create(
            tx, chain_id=second, name="t", kind="chain", spec=spec, actor="eva", authority=system.authority
        )
    )
    run_id = await system.start(first)
    after = await wait_for_first_run(system, second)
    assert (await system.wait_finished(after.id)).trigger_kind == "chain"
    assert (await system.node(after.id, "n")).artifact == run_id


async def test_a_chain_that_starts_itself_ends(system: ChainInstallation) -> None:
    chain_id = await system.define("loop", dag({"id": "again", "type": "chain", "cfg": {"chain": "loop"}}))
    assert (await system.wait_finished(await system.start(chain_id))).status is ChainRunStatus.FAILED


async def answer(
    system: ChainInstallation,
    run_id: str,
    *,
    approved: bool,
    actor: str = "eva",
    reason: str = "because",
    node_id: str = "ask",
) -> None:
    await system.database.transact(
        lambda tx: answer_approval(
            tx,
            system.engine.resume,
            run_id=run_id,
            node_id=node_id,
            approved=approved,
            actor=actor,
            reason=reason,
        )
    )


async def test_a_person_says_yes_or_no(system: ChainInstallation) -> None:
    ask = {"id": "ask", "type": "wait_approval", "cfg": {"question": "Go?", "approvers": ["eva", "ben"]}}
    after = {"id": "after", "type": "noop", "deps": ["ask"], "if": "artifacts.ask.approved"}
    chain_id = await system.define("ask", dag(ask, after))
    run_id = await system.start(chain_id)
    await system.wait_for_node(run_id, "ask", lambda node: node.wait_on == "approval")
    with pytest.raises(InvalidInput, match="Only eva, ben may answer"):
        await answer(system, run_id, approved=True, actor="mallory")
    with pytest.raises(InvalidInput, match="say why"):
        await answer(system, run_id, approved=True, reason=" ")
    await answer(system, run_id, approved=False, actor="ben")
    assert (await system.wait_finished(run_id)).status is ChainRunStatus.FAILED
    assert (await system.node(run_id, "ask")).last_error == "ben rejected it: because"
    with pytest.raises(Conflict, match="is not waiting for approval"):
        await answer(system, run_id, approved=True)
    gentle = {**ask, "cfg": {"question": "Go?", "on_no": "go_on"}}
    run_id = await system.start(await system.define("gentle", dag(gentle, after)))
    await system.wait_for_node(run_id, "ask", lambda node: node.wait_on == "approval")
    await answer(system, run_id, approved=False)
    assert (await system.wait_finished(run_id)).status is ChainRunStatus.SUCCESS
    assert (await system.node(run_id, "after")).status is NodeStatus.SKIPPED


@pytest.mark.slow
async def test_nobodys_answer_is_a_no(system: ChainInstallation) -> None:
    run, nodes = await system.run(
        dag({"id": "ask", "type": "wait_approval", "cfg": {"question": "Go?", "timeout_sec": 1}})
    )
    assert run.status is ChainRunStatus.FAILED
    assert "Timed out" in (nodes["ask"].last_error or "")


GIVE_UP = Statement("test.give_up", "Asked by a test.", "UPDATE rejudge_batches SET state = 'canceled' WHERE id = :id")


@pytest.mark.slow
async def test_a_preview_whose_batch_was_given_up_is_worth_another_try(system: ChainInstallation) -> None:
    await publish(system, "shout")
    submit = {"problem": "shout", "language": "python3", "source": "print(input().swapcase())"}
    await system.run(dag({"id": "judge", "type": "judge", "cfg": submit}))
    context = context_for("rejudge", {"action": "preview", "problem": "shout"}, authority=system.authority)
    first, again = [await system.executors["rejudge"].execute(context) for _ in range(2)]
    assert isinstance(first, NodeWaiting)
    assert isinstance(again, NodeWaiting)
    assert first.wait_key == again.wait_key, "after a crash it is the same one"
    await system.database.transact(lambda tx: tx.execute(GIVE_UP, id=first.wait_key))
    other = await system.executors["rejudge"].execute(context)
    assert isinstance(other, NodeWaiting)
    assert other.wait_key != first.wait_key


@pytest.mark.slow
async def test_the_nightly_verification_visits_every_problem(system: ChainInstallation, tmp_path: Path) -> None:
    few = tmp_path / "few"
    shutil.copytree(
        PROBLEMS / "shout", few, ignore=shutil.ignore_patterns("*.cpp", "time_limit_exceeded", "tidies_up*")
    )
    await publish(system, "shout", few)
    run = await system.wait_finished(await system.start(await system.apply(builtin.load_builtin("nightly-verify"))))
    nodes = await system.nodes(run.id)
    assert run.status is ChainRunStatus.SUCCESS, {node.node_id: node.last_error for node in nodes.values()}
    assert [row["ok"] for row in nodes["verify[0]"].artifact["submissions"]] == [True, True, True]
    assert await system.log_lines(run.id, "report") == ["Verified 1 problems; the nodes of this run show which failed."]


@pytest.mark.parametrize(
    ("node_type", "cfg", "refused"),
    [
        ("rejudge", {"action": "apply", "batch_id": "x"}, "rejudge:apply"),
        ("rejudge", {"action": "preview", "problem": "x", "user": "eva"}, "rejudge:write"),
        ("contest.rejudge_preview", {"batch_id": None}, "rejudge:write"),
        ("problem.publish", {"revision_id": "x"}, "problem:publish"),
        ("judge", {"problem": "x", "language": "python3", "source": "x", "user": "eva"}, "chain:write"),
    ],
)
async def test_starting_a_chain_lends_nobody_rights(
    system: ChainInstallation, node_type: str, cfg: dict[str, Any], refused: str
) -> None:
    chain_id = await system.define(new_id(), {"nodes": [{"id": "n", "type": node_type, "cfg": cfg}]})
    program = users.NewUser(new_id(), f"program-{new_id()[-6:]}", role="service")
    await system.database.transact(lambda tx: users.insert(tx, program))
    wanted = NewChainRun(chain_id, actor=program.name, authority=Authority((Grant(program.id),)))
    run_id = (await system.database.transact(lambda tx: system.engine.start(tx, wanted))).run_id
    assert (await system.wait_finished(run_id)).status == "failed"
    assert refused in ((await system.node(run_id, "n")).last_error or "")
