"""Nodes that act on a real contest: participants, judged submissions, a frozen scoreboard."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from adjudge.chains import builtin
from adjudge.chains.approval import answer_approval
from adjudge.chains.triggers import TriggerCommands
from adjudge.contests import lifecycle
from adjudge.contests.load_board import load_board
from adjudge.contests.times import load_times
from adjudge.domain.authority import Authority, Grant
from adjudge.domain.contest import ContestPhase, ContestRole
from adjudge.domain.ids import new_id
from adjudge.domain.states import ChainRunStatus, ContestState
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.chains.models import NewChainRun
from adjudge.store.chains.triggers import now_us
from adjudge.store.contests import awards as award_store
from adjudge.store.contests import commands, participants, queries
from adjudge.store.contests.activity_models import AwardRow
from adjudge.store.contests.models import ContestProblem, ContestRow, ContestSettings, NewParticipant
from adjudge.store.contests.scoreboard import PUBLIC
from adjudge.store.judging import queries as submission_queries
from adjudge.store.judging.models import NewSubmission
from adjudge.store.problems import queries as problem_queries
from tests.integration.executors.test_executors import PROBLEMS, dag, publish, wait_for_first_run
from tests.support.chain_fixture import ChainInstallation

MINUTE_US = 60_000_000
RIGHT = "shout/submissions/accepted/swap.py"
WRONG = "shout/submissions/wrong_answer/shouts_only.py"


@dataclass
class RealContest:
    """A published contest with one problem and two participants; the user ``eva`` organises it."""

    system: ChainInstallation
    id: str
    problem_id: str
    revision_id: str
    people: dict[str, tuple[str, str]]
    """Name → participant and user."""

    async def row(self) -> ContestRow:
        return await self.system.database.read(lambda tx: queries.find_contest(tx, self.id))

    async def phase(self) -> ContestPhase:
        contest = await self.row()
        return (await self.system.database.read(lambda tx: load_times(tx, contest))).phase()

    async def submit(self, name: str, path: str) -> str:
        """Submit a program for a participant; wait for its verdict."""
        source = (PROBLEMS / path).read_bytes()
        digest = await self.system.blobs.put(source)
        participant_id, user_id = self.people[name]
        new = NewSubmission(
            new_id(),
            user_id,
            self.problem_id,
            self.revision_id,
            "python3",
            source_digest=digest,
            source_bytes=len(source),
            contest_id=self.id,
            participant_id=participant_id,
        )
        await self.system.database.transact(lambda tx: self.system.submissions.submit(tx, [new]))
        async with asyncio.timeout(120):
            while (verdict := (await self.system.database.read(self._submission(new.id))).verdict) is None:
                await asyncio.sleep(0.02)
        return str(verdict)

    def _submission(self, submission_id: str) -> Any:
        return lambda tx: submission_queries.find_submission(tx, submission_id)

    async def end_now(self) -> None:
        """Shorten the contest so that it has ended."""
        contest = await self.row()

        async def operation(tx: Tx) -> None:
            duration_us = await now_us(tx) - (contest.settings.starts_at or 0)
            settings = replace(contest.settings, duration_us=duration_us)
            await lifecycle.update(
                tx, self.id, settings, version=contest.version, slug=contest.slug, actor="eva", reason="it is over"
            )

        await self.system.database.transact(operation)

    async def public_solved(self) -> dict[str, int]:
        """Name → solved problems, as the stored public view has it."""
        contest = await self.row()
        board = (await self.system.database.read(lambda tx: load_board(tx, contest, PUBLIC))).board
        return {row.participant.name: row.keys.k1 for row in board.rows}


async def make_contest(system: ChainInstallation, revision_id: str, **settings: Any) -> RealContest:
    """Publish a contest that started an hour ago and froze 50 minutes ago."""
    contest_id = new_id()
    problem = await system.database.read(lambda tx: problem_queries.find(tx, "shout"))
    assert problem is not None
    made = RealContest(system, contest_id, problem.id, revision_id, {})

    async def operation(tx: Tx) -> None:
        start = await now_us(tx) - 60 * MINUTE_US
        values = {"starts_at": start, "duration_us": 300 * MINUTE_US, "freeze_ct_us": 10 * MINUTE_US, **settings}
        await lifecycle.create(tx, contest_id, "final", ContestSettings(title="Final", **values), created_by=None)
        await commands.grant_roles(tx, contest_id, [(system.user_id, ContestRole.ORGANISER)], actor=system.user_id)
        listed = [ContestProblem(contest_id, made.problem_id, revision_id, "A", 0)]
        await lifecycle.set_problems(tx, contest_id, listed, actor="eva", reason="")
        for name in ("north", "south"):
            made.people[name] = new_id(), new_id()
            await users.insert(tx, users.NewUser(made.people[name][1], name))
            new = NewParticipant(made.people[name][0], contest_id, name, name, user_id=made.people[name][1])
            await participants.insert(tx, [new])
        await lifecycle.publish(tx, contest_id, actor="eva", reason="")

    await system.database.transact(operation)
    return made


@pytest.mark.slow
async def test_contest_close_chain_finalizes_exports_and_thaws(
    system_on_both: ChainInstallation, tmp_path: Path
) -> None:
    """A test's answer was wrong; the corrected problem changes one verdict, with the approval of a person."""
    system = system_on_both
    broken = tmp_path / "broken"
    shutil.copytree(PROBLEMS / "shout", broken)
    (broken / "data/secret/04-shout.ans").write_text("something else")
    only_extra = {"awards_cfg": {"gold": 0, "silver": 0, "bronze": 0}, "bronze_extra": 1}
    contest = await make_contest(system, await publish(system, "shout", broken), **only_extra)
    edited = AwardRow(contest.id, "winner", "Chosen", (contest.people["south"][0],), managed=False, ordinal=0)
    await system.database.transact(lambda tx: award_store.upsert_awards(tx, [edited]))
    assert [await contest.submit("north", RIGHT), await contest.submit("south", WRONG)] == ["WA", "WA"]
    assert await contest.phase() is ContestPhase.FROZEN
    await publish(system, "shout")
    closing = await system.apply(builtin.load_builtin("contest-close"))
    spec = {"event": "contest.ended", "parameters": {"contest": "{{ event.contest_id }}"}}
    await system.database.transact(
        lambda tx: TriggerCommands().create(
            tx, chain_id=closing, name="t", kind="event", spec=spec, actor="eva", authority=system.authority
        )
    )
    await contest.end_now()
    run = await wait_for_first_run(system, closing)
    asked = await system.wait_for_node(run.id, "approve", lambda node: node.wait_on == "approval")
    assert "would change 1 of 2 verdicts" in asked.artifact["question"]
    (changes,) = asked.artifact["details"]
    assert changes["rows"] == [
        {"participant": "north", "old_rank": 1, "new_rank": 1},
        {"participant": "south", "old_rank": 1, "new_rank": 2},
    ]
    assert changes["first_solves"] == [{"problem": "A", "old": None, "new": "north"}]
    assert {"award": "bronze-medal", "old": [], "new": ["north"]} in changes["awards"]
    assert "winner" not in {item["award"] for item in changes["awards"]}, "a person chose it"
    assert (await contest.row()).state is ContestState.PUBLISHED
    assert await contest.public_solved() == {"north": 0, "south": 0}
    await system.database.transact(
        lambda tx: answer_approval(
            tx, system.engine.resume, run_id=run.id, node_id="approve", approved=True, actor="eva", reason="checked"
        )
    )
    finished, nodes = await system.wait_finished(run.id), await system.nodes(run.id)
    assert finished.status is ChainRunStatus.SUCCESS, {key: node.last_error for key, node in nodes.items()}
    assert (await contest.row()).state is ContestState.FINALIZED
    assert await contest.phase() is ContestPhase.THAWED
    assert nodes["thaw"].artifact["was_frozen"] is True
    exported = nodes["export"].artifact
    assert exported["verdicts"] == {"AC": 1, "WA": 1}
    lines = [json.loads(line) for line in (await _read(system, exported["digest"])).splitlines()]
    assert [(line["user"], line["label"], line["verdict"]) for line in lines] == [
        ("north", "A", "AC"),
        ("south", "A", "WA"),
    ]
    scoreboard = json.loads(await _read(system, exported["files"]["scoreboard.json"]))
    assert [(row["rank"], row["score"]["num_solved"]) for row in scoreboard["rows"]] == [(1, 1), (2, 0)]
    assert scoreboard["state"]["finalized"] is not None
    awarded = {
        item["id"]: item["team_ids"] for item in json.loads(await _read(system, exported["files"]["awards.json"]))
    }
    assert awarded["bronze-medal"] == ["north"], "codes, as in the Contest API"
    assert awarded["winner"] == ["south"]
    # Closed again, nothing changes: nobody is asked, nothing is finalized or thawed a second time.
    again = await system.wait_finished(await system.start(closing, contest="final"))
    assert again.status is ChainRunStatus.SUCCESS
    nodes = await system.nodes(again.id)
    assert nodes["finalize"].artifact["was_finalized"] is True
    assert nodes["thaw"].artifact["was_frozen"] is False
    assert nodes["export"].artifact["files"] != {}


async def _read(system: ChainInstallation, digest: str) -> bytes:
    return b"".join([piece async for piece in system.blobs.open(digest)])


@pytest.mark.slow
async def test_lifecycle_nodes_do_their_work_once(system: ChainInstallation) -> None:
    contest = await make_contest(
        system, await publish(system, "shout"), starts_at=None, countdown_pause_us=MINUTE_US, freeze_ct_us=None
    )

    async def run(node_type: str) -> Any:
        chain = dag({"id": "n", "type": node_type, "cfg": {"contest": "final"}})
        _, nodes = await system.run(chain)
        return nodes["n"].artifact or nodes["n"].last_error

    assert "does not run" in await run("contest.freeze")
    assert await run("contest.start") == {"contest_id": contest.id, "slug": "final", "was_started": False}
    start = (await contest.row()).settings.starts_at
    assert (await run("contest.start"))["was_started"] is True
    assert (await contest.row()).settings.starts_at == start
    assert "still runs" in await run("contest.thaw")
    assert (await run("contest.freeze"))["was_frozen"] is False
    assert (await run("contest.freeze"))["was_frozen"] is True
    assert "has not ended" in await run("contest.finalize")
    assert await contest.phase() is ContestPhase.FROZEN


async def test_only_organisers_run_contest_nodes(system: ChainInstallation) -> None:
    await make_empty_contest(system)
    other = users.NewUser(new_id(), "mallory", role="setter")
    await system.database.transact(lambda tx: users.insert(tx, other))

    async def error(node_type: str, authority: Authority) -> str:
        chain_id = await system.define(new_id(), dag({"id": "n", "type": node_type, "cfg": {"contest": "final"}}))
        wanted = NewChainRun(chain_id, actor="mallory", authority=authority)
        run_id = (await system.database.transact(lambda tx: system.engine.start(tx, wanted))).run_id
        await system.wait_finished(run_id)
        return (await system.node(run_id, "n")).last_error or ""

    both = Authority((Grant(system.user_id), Grant(other.id)))
    for node_type in ("contest.start", "contest.freeze", "contest.thaw", "contest.finalize", "contest.export"):
        assert "Not found: contest" in await error(node_type, Authority((Grant(other.id),))), node_type
        assert "Not found: contest" in await error(node_type, both), node_type


async def make_empty_contest(system: ChainInstallation) -> None:
    """A draft, which only its organisers know of."""

    async def operation(tx: Tx) -> None:
        contest_id = new_id()
        settings = ContestSettings(title="Final", duration_us=MINUTE_US)
        await lifecycle.create(tx, contest_id, "final", settings, created_by=None)
        await commands.grant_roles(tx, contest_id, [(system.user_id, ContestRole.ORGANISER)], actor=system.user_id)

    await system.database.transact(operation)
