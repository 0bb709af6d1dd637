"""Executors at work in a whole house: the real engine, the real sandbox, a real database."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
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
from tests.support.chain_fixture import ChainInstallation, open_chain_installation, zip_folder
from tests.support.node_context import context_for

PROBLEMS = Path(__file__).parents[3] / "examples" / "problems"


@pytest.fixture(scope="session")
def compile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled programs, shared by all tests as in real life."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
async def chain_installation(sqlite_url: str, tmp_path: Path, compile_cache: Path) -> AsyncIterator[ChainInstallation]:
    """A house on SQLite."""
    async with open_chain_installation(sqlite_url, tmp_path, compile_cache) as chain_installation:
        yield chain_installation


@pytest.fixture
async def chain_installation_on_both(
    store_url: str, tmp_path: Path, compile_cache: Path
) -> AsyncIterator[ChainInstallation]:
    """A house on each database in turn."""
    async with open_chain_installation(store_url, tmp_path, compile_cache) as chain_installation:
        yield chain_installation


def dag(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": [{"retry": {"max_attempts": 1}, **node} for node in nodes]}


def double(folder: Path) -> Path:
    """A package whose test is made by its generator: the input on stdout, the answer on stderr."""
    folder.mkdir()
    (folder / "init.yml").write_text("generator: gen.py\ntest_cases:\n- {generator_args: [21], points: 1}\n")
    (folder / "gen.py").write_text("import sys\nn = int(sys.argv[1])\nprint(n)\nprint(2 * n, file=sys.stderr)\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "made"), [("shout", 0), ("double", 1)])
async def test_the_problem_pipeline_takes_a_package_to_publication(
    chain_installation: ChainInstallation, tmp_path: Path, name: str, made: int
) -> None:
    digest = await chain_installation.blobs.put(zip_folder(double(tmp_path / name) if made else PROBLEMS / name))
    run_id = await chain_installation.start(
        await chain_installation.apply(builtin.load_builtin("problem-pipeline")), package=digest, problem=name
    )
    asked = await chain_installation.wait_for_node(run_id, "approve", lambda node: node.wait_on == "approval")
    nodes = await chain_installation.nodes(run_id)
    table = nodes["verify"].artifact
    assert table["ok"]
    assert all(row["ok"] for row in table["submissions"])
    assert len(table["submissions"]) == nodes["check"].artifact["submissions"]
    assert (nodes["check"].artifact["to_be_made"], nodes["generate"].artifact["made"]) == (made, made)
    assert asked.artifact["question"].startswith(f"Publish revision 1 of {name}")
    problem = await chain_installation.database.read(lambda tx: problem_queries.find(tx, name))
    assert problem is not None
    assert problem.published_revision_id is None
    await chain_installation.database.transact(
        lambda tx: answer_approval(
            tx,
            chain_installation.engine.resume,
            run_id=run_id,
            node_id="approve",
            approved=True,
            actor="eva",
            reason="looks good",
        )
    )
    assert (await chain_installation.wait_finished(run_id)).status is ChainRunStatus.SUCCESS
    published = await chain_installation.database.read(lambda tx: problem_queries.find(tx, name))
    assert published is not None
    assert published.published_revision_id == nodes["generate"].artifact["revision_id"]
    assert (await chain_installation.nodes(run_id))["approve"].artifact == {
        "approved": True,
        "by": "eva",
        "by_id": "eva",
        "reason": "looks good",
    }


async def publish(chain_installation: ChainInstallation, name: str, folder: Path | None = None) -> str:
    """A published problem; return the revision's id."""
    digest = await chain_installation.blobs.put(zip_folder(folder or PROBLEMS / name))
    chain = dag(
        {"id": "make", "type": "problem.generate", "cfg": {"package": digest, "problem": name}},
        {
            "id": "publish",
            "type": "problem.publish",
            "deps": ["make"],
            "cfg": {"revision_id": "{{ artifacts.make.revision_id }}"},
        },
    )
    run, nodes = await chain_installation.run(chain)
    assert run.status is ChainRunStatus.SUCCESS, {node.node_id: node.last_error for node in nodes.values()}
    revision_id: str = nodes["make"].artifact["revision_id"]
    return revision_id


async def wait_for_first_run(chain_installation: ChainInstallation, chain_id: str) -> ChainRunRow:
    """The first run of a chain, as soon as there is one."""
    async with asyncio.timeout(240):
        while not (
            found := await chain_installation.database.read(lambda tx: chain_queries.page_runs(tx, chain_id=chain_id))
        ):
            await asyncio.sleep(0.01)
    return found[0]


@pytest.mark.slow
async def test_judging_waits_for_the_verdict_without_a_worker(chain_installation: ChainInstallation) -> None:
    revision_id = await publish(chain_installation, "shout")
    right = (PROBLEMS / "shout/submissions/accepted/swap.py").read_text()
    wrong = await chain_installation.blobs.put(
        (PROBLEMS / "shout/submissions/wrong_answer/shouts_only.py").read_bytes()
    )
    run, nodes = await chain_installation.run(
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
async def test_publishing_tells_the_triggers(chain_installation: ChainInstallation) -> None:
    chain_id = await chain_installation.define(
        "after", dag({"id": "say", "type": "noop", "cfg": {"artifact": "{{ parameters.slug }}"}})
    )
    spec = {"event": "problem.published", "parameters": {"slug": "{{ event.slug }}"}}
    await chain_installation.database.transact(
        lambda tx: TriggerCommands().create(
            tx,
            chain_id=chain_id,
            name="t",
            kind="event",
            spec=spec,
            actor="eva",
            authority=chain_installation.authority,
        )
    )
    await publish(chain_installation, "shout")

    run = await wait_for_first_run(chain_installation, chain_id)
    assert (await chain_installation.wait_finished(run.id)).trigger_kind == "event"
    assert (await chain_installation.node(run.id, "say")).artifact == "shout"


async def test_a_broken_package_is_refused_with_its_findings(chain_installation: ChainInstallation) -> None:
    digest = await chain_installation.blobs.put(zip_folder(PROBLEMS / "shout")[:-30])
    run, nodes = await chain_installation.run(dag({"id": "check", "type": "problem.check", "cfg": {"package": digest}}))
    assert run.status is ChainRunStatus.FAILED
    assert "cannot be used" in (nodes["check"].last_error or "")


async def test_programs_run_in_the_box(chain_installation: ChainInstallation) -> None:
    digest = await chain_installation.blobs.put(b"from the store\n")
    code = "import sys; t = open('a.txt').read() + sys.stdin.read(); print(t, end='')"
    code += "; open('out.txt', 'w').write(t.upper())"
    run, nodes = await chain_installation.run(
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


async def test_sleep_holds_no_worker_and_stops(chain_installation: ChainInstallation) -> None:
    many = [{"id": f"s{n}", "type": "sleep", "cfg": {"seconds": 0.05}} for n in range(6)]
    run, nodes = await chain_installation.run(dag(*many))
    assert run.status is ChainRunStatus.SUCCESS
    assert all("until_ms" in node.artifact for node in nodes.values())
    run_id = await chain_installation.start(
        await chain_installation.define("long", dag({"id": "s", "type": "sleep", "cfg": {"seconds": 3600}}))
    )
    await chain_installation.wait_for_node(run_id, "s", lambda node: node.wait_on == "timer")
    await chain_installation.database.transact(
        lambda tx: chain_installation.engine.stop(tx, run_id, actor="eva", reason="enough")
    )
    assert (await chain_installation.wait_finished(run_id)).status is ChainRunStatus.STOPPED


async def test_chains_start_chains(chain_installation: ChainInstallation) -> None:
    inner = dag({"id": "x", "type": "noop", "cfg": {"artifact": "{{ parameters.n }}"}})
    await chain_installation.define("inner", inner)
    await chain_installation.define("bad", dag({"id": "x", "type": "sandbox", "cfg": {"argv": ["/usr/bin/false"]}}))
    cfg = {"chain": "inner", "parameters": {"n": "{{ item }}"}}
    run, nodes = await chain_installation.run(
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
    assert (await chain_installation.node(child, "x")).artifact == 1
    assert len({item["run_id"] for item in nodes["join"].artifact}) == 3
    run, nodes = await chain_installation.run(dag({"id": "bad", "type": "chain", "cfg": {"chain": "bad"}}))
    assert (run.status, nodes["bad"].status) == (ChainRunStatus.FAILED, NodeStatus.FAILED)
    run, nodes = await chain_installation.run(dag({"id": "gone", "type": "chain", "cfg": {"chain": "nowhere"}}))
    assert "Not found: chain 'nowhere'" in (nodes["gone"].last_error or "")


async def test_a_chain_after_a_chain(chain_installation_on_both: ChainInstallation) -> None:
    chain_installation = chain_installation_on_both
    first = await chain_installation.define("first", dag({"id": "n", "type": "noop"}))
    second = await chain_installation.define(
        "second", dag({"id": "n", "type": "noop", "cfg": {"artifact": "{{ parameters.run }}"}})
    )
    spec = {"chain_id": first, "on": "any", "parameters": {"run": "{{ event.run_id }}"}}
    await chain_installation.database.transact(
        lambda tx: TriggerCommands().create(
            tx, chain_id=second, name="t", kind="chain", spec=spec, actor="eva", authority=chain_installation.authority
        )
    )
    run_id = await chain_installation.start(first)
    after = await wait_for_first_run(chain_installation, second)
    assert (await chain_installation.wait_finished(after.id)).trigger_kind == "chain"
    assert (await chain_installation.node(after.id, "n")).artifact == run_id


async def test_a_chain_that_starts_itself_ends(chain_installation: ChainInstallation) -> None:
    chain_id = await chain_installation.define("loop", dag({"id": "again", "type": "chain", "cfg": {"chain": "loop"}}))
    assert (
        await chain_installation.wait_finished(await chain_installation.start(chain_id))
    ).status is ChainRunStatus.FAILED


async def answer(
    chain_installation: ChainInstallation,
    run_id: str,
    *,
    approved: bool,
    actor: str = "eva",
    reason: str = "because",
    node_id: str = "ask",
) -> None:
    await chain_installation.database.transact(
        lambda tx: answer_approval(
            tx,
            chain_installation.engine.resume,
            run_id=run_id,
            node_id=node_id,
            approved=approved,
            actor=actor,
            reason=reason,
        )
    )


async def test_a_person_says_yes_or_no(chain_installation: ChainInstallation) -> None:
    ask = {"id": "ask", "type": "wait_approval", "cfg": {"question": "Go?", "approvers": ["eva", "ben"]}}
    after = {"id": "after", "type": "noop", "deps": ["ask"], "if": "artifacts.ask.approved"}
    chain_id = await chain_installation.define("ask", dag(ask, after))
    run_id = await chain_installation.start(chain_id)
    await chain_installation.wait_for_node(run_id, "ask", lambda node: node.wait_on == "approval")
    with pytest.raises(InvalidInput, match="Only eva, ben may answer"):
        await answer(chain_installation, run_id, approved=True, actor="mallory")
    with pytest.raises(InvalidInput, match="say why"):
        await answer(chain_installation, run_id, approved=True, reason=" ")
    await answer(chain_installation, run_id, approved=False, actor="ben")
    assert (await chain_installation.wait_finished(run_id)).status is ChainRunStatus.FAILED
    assert (await chain_installation.node(run_id, "ask")).last_error == "ben rejected it: because"
    with pytest.raises(Conflict, match="is not waiting for approval"):
        await answer(chain_installation, run_id, approved=True)
    gentle = {**ask, "cfg": {"question": "Go?", "on_no": "go_on"}}
    run_id = await chain_installation.start(await chain_installation.define("gentle", dag(gentle, after)))
    await chain_installation.wait_for_node(run_id, "ask", lambda node: node.wait_on == "approval")
    await answer(chain_installation, run_id, approved=False)
    assert (await chain_installation.wait_finished(run_id)).status is ChainRunStatus.SUCCESS
    assert (await chain_installation.node(run_id, "after")).status is NodeStatus.SKIPPED


@pytest.mark.slow
async def test_nobodys_answer_is_a_no(chain_installation: ChainInstallation) -> None:
    run, nodes = await chain_installation.run(
        dag({"id": "ask", "type": "wait_approval", "cfg": {"question": "Go?", "timeout_sec": 1}})
    )
    assert run.status is ChainRunStatus.FAILED
    assert "Timed out" in (nodes["ask"].last_error or "")


GIVE_UP = Statement("test.give_up", "Asked by a test.", "UPDATE rejudge_batches SET state = 'canceled' WHERE id = :id")


@pytest.mark.slow
async def test_a_preview_whose_batch_was_given_up_is_worth_another_try(chain_installation: ChainInstallation) -> None:
    await publish(chain_installation, "shout")
    submit = {"problem": "shout", "language": "python3", "source": "print(input().swapcase())"}
    await chain_installation.run(dag({"id": "judge", "type": "judge", "cfg": submit}))
    context = context_for("rejudge", {"action": "preview", "problem": "shout"}, authority=chain_installation.authority)
    first, again = [await chain_installation.executors["rejudge"].execute(context) for _ in range(2)]
    assert isinstance(first, NodeWaiting)
    assert isinstance(again, NodeWaiting)
    assert first.wait_key == again.wait_key, "after a crash it is the same one"
    await chain_installation.database.transact(lambda tx: tx.execute(GIVE_UP, id=first.wait_key))
    other = await chain_installation.executors["rejudge"].execute(context)
    assert isinstance(other, NodeWaiting)
    assert other.wait_key != first.wait_key


ADD_CONTEST = Statement(
    "test.contest",
    "Asked by a test.",
    "INSERT INTO contests (id, slug, title, starts_at, freezes_at, ends_at, created_at, updated_at)"
    " VALUES (:id, :id, :id, {now} - 100, {now} - 50, {now} + :ends, {now}, {now})",
)


@pytest.mark.slow
async def test_a_contest_is_closed_by_the_shipped_chain(
    chain_installation_on_both: ChainInstallation, tmp_path: Path
) -> None:
    """A test's answer was wrong, the problem was corrected, and one verdict changes with the approval of a person."""
    chain_installation = chain_installation_on_both
    broken = tmp_path / "broken"
    shutil.copytree(PROBLEMS / "shout", broken)
    (broken / "data/secret/04-shout.ans").write_text("something else")
    await publish(chain_installation, "shout", broken)
    await chain_installation.database.transact(lambda tx: tx.execute(ADD_CONTEST, id="final", ends=-10))
    source = (PROBLEMS / "shout/submissions/accepted/swap.py").read_text()
    submit = {"problem": "shout", "language": "python3", "source": source, "contest": "final"}
    _, nodes = await chain_installation.run(dag({"id": "judge", "type": "judge", "cfg": submit}))
    assert nodes["judge"].artifact["verdict"] == "WA"
    await publish(chain_installation, "shout")
    applied = await chain_installation.define("on-applied", dag({"id": "n", "type": "noop"}))
    spec = {"event": "rejudge.applied"}
    await chain_installation.database.transact(
        lambda tx: TriggerCommands().create(
            tx, chain_id=applied, name="t", kind="event", spec=spec, actor="eva", authority=chain_installation.authority
        )
    )
    closing = await chain_installation.apply(builtin.load_builtin("contest-close"))
    run_id = await chain_installation.start(closing, contest="final", user="eva")
    asked = await chain_installation.wait_for_node(run_id, "approve", lambda node: node.wait_on == "approval")
    assert "would change 1 of 1 verdicts" in asked.artifact["question"]
    assert asked.artifact["details"] == [{"old": "WA", "new": "AC", "outcome": "judged", "count": 1}]
    await answer(chain_installation, run_id, approved=True, node_id="approve")
    assert (await chain_installation.wait_finished(run_id)).status is ChainRunStatus.SUCCESS
    nodes = await chain_installation.nodes(run_id)
    assert nodes["apply"].artifact["changed"] == 1
    assert nodes["discard"].status is NodeStatus.SKIPPED
    assert nodes["export"].artifact["verdicts"] == {"AC": 1}
    data = b"".join([piece async for piece in chain_installation.blobs.open(nodes["export"].artifact["digest"])])
    (line,) = data.splitlines()
    assert {"user": "eva", "problem": "shout", "verdict": "AC"}.items() <= json.loads(line).items()
    assert (await wait_for_first_run(chain_installation, applied)).trigger_kind == "event"
    # Nothing more changes: nobody is asked, the batch is discarded, the results are exported again.
    run = await chain_installation.wait_finished(await chain_installation.start(closing, contest="final", user="eva"))
    assert run.status is ChainRunStatus.SUCCESS
    again = await chain_installation.nodes(run.id)
    assert (again["approve"].status, again["discard"].status) == (NodeStatus.SKIPPED, NodeStatus.SUCCESS)


@pytest.mark.slow
async def test_the_nightly_verification_visits_every_problem(
    chain_installation: ChainInstallation, tmp_path: Path
) -> None:
    few = tmp_path / "few"
    shutil.copytree(
        PROBLEMS / "shout", few, ignore=shutil.ignore_patterns("*.cpp", "time_limit_exceeded", "tidies_up*")
    )
    await publish(chain_installation, "shout", few)
    run = await chain_installation.wait_finished(
        await chain_installation.start(await chain_installation.apply(builtin.load_builtin("nightly-verify")))
    )
    nodes = await chain_installation.nodes(run.id)
    assert run.status is ChainRunStatus.SUCCESS, {node.node_id: node.last_error for node in nodes.values()}
    assert [row["ok"] for row in nodes["verify[0]"].artifact["submissions"]] == [True, True, True]
    assert await chain_installation.log_lines(run.id, "report") == [
        "Verified 1 problems; the nodes of this run show which failed."
    ]


async def test_contests_are_unfrozen_and_exported(chain_installation: ChainInstallation) -> None:
    await chain_installation.database.transact(lambda tx: tx.execute(ADD_CONTEST, id="over", ends=-10))
    await chain_installation.database.transact(lambda tx: tx.execute(ADD_CONTEST, id="running", ends=10**9))
    _, nodes = await chain_installation.run(
        dag(
            {"id": "over", "type": "contest.unfreeze", "cfg": {"contest": "over"}},
            {"id": "running", "type": "contest.unfreeze", "cfg": {"contest": "running"}},
            {"id": "export", "type": "contest.export", "deps": ["over"], "cfg": {"contest": "over"}},
        )
    )
    assert nodes["over"].artifact["was_frozen"]
    assert "still runs" in (nodes["running"].last_error or "")
    assert nodes["export"].artifact["submissions"] == 0
    assert json.dumps(nodes["export"].artifact["verdicts"]) == "{}"


@pytest.mark.parametrize(
    ("node_type", "cfg", "refused"),
    [
        ("rejudge", {"action": "apply", "batch_id": "x"}, "rejudge:apply"),
        ("rejudge", {"action": "preview", "problem": "x", "user": "eva"}, "rejudge:write"),
        ("contest.unfreeze", {"contest": "x"}, "chain:write"),
        ("contest.export", {"contest": "x"}, "submission:read_all"),
        ("problem.publish", {"revision_id": "x"}, "problem:publish"),
        ("judge", {"problem": "x", "language": "python3", "source": "x", "user": "eva"}, "chain:write"),
    ],
)
async def test_starting_a_chain_lends_nobody_rights(
    chain_installation: ChainInstallation, node_type: str, cfg: dict[str, Any], refused: str
) -> None:
    chain_id = await chain_installation.define(new_id(), {"nodes": [{"id": "n", "type": node_type, "cfg": cfg}]})
    program = users.NewUser(new_id(), f"program-{new_id()[-6:]}", role="service")
    await chain_installation.database.transact(lambda tx: users.insert(tx, program))
    wanted = NewChainRun(chain_id, actor=program.name, authority=Authority((Grant(program.id),)))
    run_id = (await chain_installation.database.transact(lambda tx: chain_installation.engine.start(tx, wanted))).run_id
    assert (await chain_installation.wait_finished(run_id)).status == "failed"
    assert refused in ((await chain_installation.node(run_id, "n")).last_error or "")
