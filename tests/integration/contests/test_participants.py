"""Participants, teams, groups, clarifications, prints and awards in the database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adjudge.contests import registration
from adjudge.domain.contest import ContestRole, ParticipantKind
from adjudge.domain.errors import Conflict, NotFound
from adjudge.domain.ids import new_id
from adjudge.store import Tx
from adjudge.store.accounts import users
from adjudge.store.contests import awards, clarifications, commands, participants, queries, read_marks, teams
from adjudge.store.contests.activity_models import AwardRow, NewClarification
from adjudge.store.contests.models import ContestGroupRow, NewParticipant, OrganizationRow, TeamRow
from adjudge.store.contests.scoreboard import PUBLIC
from tests.support.contest_fixture import BoardReader, make_contest
from tests.support.store_harness import StoreHarness


async def test_thousand_teams_are_imported_in_a_few_statements(store: StoreHarness) -> None:
    fixture = await make_contest(store, people=1)
    reader = BoardReader(fixture, PUBLIC)
    await reader.follow()
    codes = [f"t{number:04}" for number in range(1_000)]

    async def load(tx: Tx) -> None:
        organizations = await teams.upsert_organizations(tx, [OrganizationRow(new_id(), "uni", "University")])
        found = await teams.upsert_teams(
            tx, [TeamRow(new_id(), code, code, organization_id=organizations["uni"].id) for code in codes]
        )
        new = [
            NewParticipant(new_id(), fixture.contest_id, code, code, team_id=found[code].id, members=())
            for code in codes
        ]
        await registration.add_participants(tx, fixture.contest_id, new, actor="ada")

    await fixture.transact(load)
    with pytest.raises(Conflict) as refused:
        await fixture.transact(load)
    assert refused.value.fields["field"] in ("code", "team_id")
    assert await store.database.read(lambda tx: participants.count_kinds(tx, fixture.contest_id)) == {"official": 1_001}
    page = await store.database.read(lambda tx: participants.page(tx, fixture.contest_id, limit=600))
    rest = await store.database.read(lambda tx: participants.page(tx, fixture.contest_id, after=page[-1].id, limit=600))
    assert (len(page), len(rest)) == (600, 401)
    assert await reader.follow() == ["reset"]


async def test_user_takes_part_once_and_in_virtual_runs(store: StoreHarness) -> None:
    fixture = await make_contest(store, people=1)
    user_id = fixture.users[fixture.participants[0]]

    async def add(run_no: int, kind: ParticipantKind) -> None:
        new = NewParticipant(
            new_id(), fixture.contest_id, f"run{run_no}-{kind}", "Ada", kind, user_id=user_id, run_no=run_no
        )
        await fixture.transact(lambda tx: registration.add_participants(tx, fixture.contest_id, [new], actor="ada"))

    with pytest.raises(Conflict, match="takes part already"):
        await add(0, ParticipantKind.UNOFFICIAL)
    await add(1, ParticipantKind.VIRTUAL)
    rows = await store.database.read(lambda tx: participants.of_user(tx, [fixture.contest_id], user_id))
    assert [row.kind for row in rows] == [ParticipantKind.VIRTUAL, ParticipantKind.OFFICIAL]
    started = await fixture.transact(lambda tx: participants.start(tx, rows[0].id))
    assert started.started_at == store.clock.now_us
    with pytest.raises(Conflict, match="started already"):
        await fixture.transact(lambda tx: participants.start(tx, rows[0].id))


async def test_participant_with_submissions_cannot_be_deleted(store: StoreHarness) -> None:
    fixture = await make_contest(store, people=2)
    await store.clock.advance(60_000)
    await fixture.submit(0)
    with pytest.raises(Conflict, match="disqualify"):
        await fixture.transact(lambda tx: participants.delete(tx, fixture.contest_id, fixture.participants[0]))
    await fixture.transact(lambda tx: participants.delete(tx, fixture.contest_id, fixture.participants[1]))
    with pytest.raises(NotFound):
        await fixture.transact(lambda tx: participants.delete(tx, fixture.contest_id, fixture.participants[1]))


async def test_roles(store: StoreHarness) -> None:
    fixture = await make_contest(store, people=1)
    user_id = fixture.users[fixture.participants[0]]
    grants = [(user_id, ContestRole.JUDGE), (user_id, ContestRole.BALLOON)]
    for _ in range(2):
        await fixture.transact(lambda tx: commands.grant_roles(tx, fixture.contest_id, grants, actor="ada"))
    found = await store.database.read(lambda tx: queries.roles_of_user(tx, [fixture.contest_id], user_id))
    assert found[fixture.contest_id] == {ContestRole.JUDGE, ContestRole.BALLOON}
    await fixture.transact(
        lambda tx: commands.revoke_role(tx, fixture.contest_id, user_id, ContestRole.JUDGE, actor="ada")
    )
    with pytest.raises(NotFound):
        await fixture.transact(
            lambda tx: commands.revoke_role(tx, fixture.contest_id, user_id, ContestRole.JUDGE, actor="ada")
        )


async def test_clarifications_reach_their_recipients(store: StoreHarness) -> None:
    fixture = await make_contest(store, people=3)
    asker, grouped, other = fixture.participants
    judge, group_id, contest_id = new_id(), new_id(), fixture.contest_id

    async def set_up(tx: Tx) -> None:
        await users.insert(tx, users.NewUser(judge, "judge"))
        await participants.upsert_groups(tx, [ContestGroupRow(group_id, contest_id, "north", "North")])
        await participants.set_groups(tx, [grouped], [(group_id, grouped)])

    await fixture.transact(set_up)
    question, answer = new_id(), new_id()
    new = [
        NewClarification(question, contest_id, "jury", "Why?", fixture.users[asker], from_participant_id=asker),
        NewClarification(answer, contest_id, "participant", "So", judge, to_participant_id=asker, reply_to_id=question),
        NewClarification(new_id(), contest_id, "groups", "To the north.", judge, group_ids=[group_id]),
        NewClarification(new_id(), contest_id, "all", "To all.", judge),
    ]
    await fixture.transact(lambda tx: clarifications.insert(tx, new[0]))
    assert await store.database.read(lambda tx: clarifications.count_open(tx, contest_id)) == 1
    await fixture.transact(lambda tx: clarifications.claim(tx, contest_id, question, judge))
    with pytest.raises(Conflict, match="claimed by somebody else"):
        await fixture.transact(lambda tx: clarifications.claim(tx, contest_id, question, fixture.users[other]))
    for item in new[1:]:
        await fixture.transact(lambda tx, item=item: clarifications.insert(tx, item))  # type: ignore[misc]  # a default binds the loop variable
    assert await store.database.read(lambda tx: clarifications.count_open(tx, contest_id)) == 0

    async def visible(participant_id: str | None) -> list[int]:
        rows = await store.database.read(
            lambda tx: clarifications.page_visible(tx, contest_id, participant_id, limit=10)
        )
        return [row.number for row in rows]

    assert [await visible(item) for item in (asker, grouped, other, None)] == [[4, 2, 1], [4, 3], [4], [4]]

    async def unread(tx: Tx) -> int:
        mark = await read_marks.read_mark(tx, contest_id, fixture.users[asker])
        return await clarifications.count_unread(tx, contest_id, asker, mark.clarification_number)

    assert await store.database.read(unread) == 2
    for number in (2, 1):  # a mark never goes back
        await fixture.transact(
            lambda tx, number=number: read_marks.advance_read_mark(  # type: ignore[misc]  # as above
                tx, contest_id, fixture.users[asker], clarification_number=number
            )
        )
    assert await store.database.read(unread) == 1


async def test_awards_are_replaced_by_code(store: StoreHarness) -> None:
    fixture = await make_contest(store, people=1)
    award = AwardRow(fixture.contest_id, "gold-medal", "Gold", (fixture.participants[0],))
    edited = replace(award, citation="Gold medal", managed=False)
    await fixture.transact(lambda tx: awards.upsert_awards(tx, [award]))
    await fixture.transact(lambda tx: awards.upsert_awards(tx, [edited]))
    assert await store.database.read(lambda tx: awards.awards(tx, fixture.contest_id)) == [edited]
    await fixture.transact(lambda tx: awards.delete_awards(tx, fixture.contest_id, ["gold-medal"]))
    assert await store.database.read(lambda tx: awards.awards(tx, fixture.contest_id)) == []
