"""Objects of 2026-01 as objects of 2023-06."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.contests.ccs.version import MAIN_GROUP_ID, CcsCollection, CcsVersion, convert

FILE = {"href": "x", "filename": "x.zip", "mime": "application/zip", "tag": []}


@pytest.mark.parametrize(
    ("collection", "item", "expected"),
    [
        (
            CcsCollection.CONTEST,
            {"id": "c", "penalty_time": "0:20:00.000", "main_scoreboard_group_id": MAIN_GROUP_ID},
            {"id": "c", "penalty_time": 20},
        ),
        (CcsCollection.CONTEST, {"id": "c", "scoreboard_type": "score"}, {"id": "c", "scoreboard_type": "score"}),
        (
            CcsCollection.JUDGEMENTS,
            {"id": "j", "current": True, "judgement_type_id": "WA", "simplified_judgement_type_id": "RE"},
            {"id": "j", "judgement_type_id": "WA"},
        ),
        (CcsCollection.JUDGEMENTS, {"id": "j", "current": False}, None),
        (CcsCollection.GROUPS, {"id": MAIN_GROUP_ID, "name": "Main"}, None),
        (CcsCollection.GROUPS, {"id": "asia", "name": "Asia"}, {"id": "asia", "name": "Asia"}),
        (CcsCollection.TEAMS, {"id": "1", "group_ids": [MAIN_GROUP_ID, "asia"]}, {"id": "1", "group_ids": ["asia"]}),
        (CcsCollection.CLARIFICATIONS, {"id": "1", "text": "all"}, {"id": "1", "text": "all"}),
        (CcsCollection.CLARIFICATIONS, {"id": "1", "to_team_ids": ["7"]}, {"id": "1", "to_team_id": "7"}),
        (CcsCollection.CLARIFICATIONS, {"id": "1", "to_group_ids": ["asia"]}, None),
        (CcsCollection.CLARIFICATIONS, {"id": "1", "to_team_ids": []}, None),
        (CcsCollection.CLARIFICATIONS, {"id": "1", "to_team_ids": [], "to_group_ids": ["asia"]}, None),
        (
            CcsCollection.CLARIFICATIONS,
            {"id": "1", "to_team_ids": ["7"], "to_group_ids": ["asia"]},
            {"id": "1", "to_team_id": "7"},
        ),
        (
            CcsCollection.SUBMISSIONS,
            {"id": "1", "account_id": "u", "files": [FILE]},
            {"id": "1", "files": [{key: value for key, value in FILE.items() if key != "tag"}]},
        ),
        (CcsCollection.PROBLEMS, {"id": "A", "memory_limit": 256, "attachments": []}, {"id": "A"}),
        (CcsCollection.JUDGEMENT_TYPES, {"id": "WA", "simplified_judgement_type_id": "RE"}, {"id": "WA"}),
        (CcsCollection.AWARDS, {"id": "winner"}, {"id": "winner"}),
    ],
)
def test_object_of_the_earlier_version(
    collection: CcsCollection, item: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    before = repr(item)
    assert convert(collection, item, CcsVersion.V2023_06) == expected
    assert repr(item) == before, "the object itself is unchanged"
    assert convert(collection, item, CcsVersion.V2026_01) == item
