"""The served versions of the Contest API. Objects are made as in 2026-01; ``convert`` makes those of 2023-06 from them.

Differences: 2023-06 has integer minutes, one current judgement of a submission, and clarifications to one team or all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from adjudge.contests.ccs.times import parse_reltime

Object = dict[str, Any]
MAIN_GROUP: Final = "main_scoreboard_group_id"
MAIN_GROUP_ID: Final = "adjudge-main-scoreboard"
"""The group of all ranked teams, which 2026-01 has instead of hidden teams."""
_MINUTE_US: Final = 60_000_000


class CcsVersion(StrEnum):
    """A version of the specification."""

    V2023_06 = "2023-06"
    V2026_01 = "2026-01"

    @property
    def url(self) -> str:
        """Where the version is specified."""
        return f"https://ccs-specs.icpc.io/{self}/contest_api"


class CcsCollection(StrEnum):
    """The types of objects, as notifications and ``access`` name them."""

    CONTEST = "contest"
    JUDGEMENT_TYPES = "judgement-types"
    LANGUAGES = "languages"
    PROBLEMS = "problems"
    GROUPS = "groups"
    ORGANIZATIONS = "organizations"
    TEAMS = "teams"
    PERSONS = "persons"
    ACCOUNTS = "accounts"
    STATE = "state"
    SUBMISSIONS = "submissions"
    JUDGEMENTS = "judgements"
    RUNS = "runs"
    CLARIFICATIONS = "clarifications"
    AWARDS = "awards"
    COMMENTARY = "commentary"


_ADDED: Final[Mapping[CcsCollection, frozenset[str]]] = {
    CcsCollection.CONTEST: frozenset({MAIN_GROUP}),
    CcsCollection.JUDGEMENT_TYPES: frozenset({"simplified_judgement_type_id"}),
    CcsCollection.PROBLEMS: frozenset({"memory_limit", "output_limit", "code_limit", "attachments"}),
    CcsCollection.SUBMISSIONS: frozenset({"account_id"}),
    CcsCollection.JUDGEMENTS: frozenset({"simplified_judgement_type_id", "current"}),
    CcsCollection.CLARIFICATIONS: frozenset({"to_team_ids", "to_group_ids"}),
}
"""Properties that 2026-01 added."""
_REMOVED: Final[Mapping[CcsCollection, frozenset[str]]] = {CcsCollection.CLARIFICATIONS: frozenset({"to_team_id"})}
"""Properties that 2026-01 does not have any more."""
_FILES: Final = frozenset({"files", "statement", "package", "photo", "logo"})


def convert(collection: CcsCollection, item: Object, version: CcsVersion) -> Object | None:
    """The object as a version has it; None if the version cannot express it, so that it is left out."""
    if version is CcsVersion.V2026_01:
        return item
    if collection is CcsCollection.JUDGEMENTS and item.get("current") is False:
        return None  # superseded: 2023-06 has one judgement of a submission
    change = _CHANGES.get(collection)
    changed = item if change is None else change(item)
    if changed is None:
        return None
    kept = {name: value for name, value in changed.items() if name not in _ADDED.get(collection, frozenset())}
    for name in _FILES & kept.keys():
        kept[name] = [{key: value for key, value in file.items() if key != "tag"} for file in kept[name]]
    return kept


def added_properties(collection: CcsCollection, version: CcsVersion) -> frozenset[str]:
    """The properties of a type that only the other version has."""
    table = _ADDED if version is CcsVersion.V2023_06 else _REMOVED
    return table.get(collection, frozenset())


def _contest(item: Object) -> Object:
    if "penalty_time" not in item:
        return item
    return {**item, "penalty_time": parse_reltime(item["penalty_time"], "penalty_time") // _MINUTE_US}


def _group(item: Object) -> Object | None:
    return None if item["id"] == MAIN_GROUP_ID else item


def _team(item: Object) -> Object:
    return {**item, "group_ids": [group for group in item["group_ids"] if group != MAIN_GROUP_ID]}


def _clarification(item: Object) -> Object | None:
    """A message to one team, or to all; one to groups is not expressible, and must not look like one to all."""
    teams = item.get("to_team_ids")
    if teams:
        return item | {"to_team_id": teams[0]}
    return item if teams is None and "to_group_ids" not in item else None


_CHANGES: Final[Mapping[CcsCollection, Callable[[Object], Object | None]]] = {
    CcsCollection.CONTEST: _contest,
    CcsCollection.GROUPS: _group,
    CcsCollection.TEAMS: _team,
    CcsCollection.CLARIFICATIONS: _clarification,
}
