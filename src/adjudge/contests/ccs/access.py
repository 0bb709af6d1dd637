"""``access`` of the Contest API: the properties of each type that a reader may see, and what the reader may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from adjudge.contests.ccs.snapshot import ContestSnapshot
from adjudge.contests.ccs.version import CcsCollection, CcsVersion, Object, added_properties

PROPERTIES: Final[Mapping[CcsCollection, tuple[str, ...]]] = {
    CcsCollection.CONTEST: (
        "id",
        "name",
        "formal_name",
        "shortname",
        "start_time",
        "countdown_pause_time",
        "duration",
        "scoreboard_freeze_duration",
        "scoreboard_thaw_time",
        "scoreboard_type",
        "main_scoreboard_group_id",
        "penalty_time",
    ),
    CcsCollection.JUDGEMENT_TYPES: ("id", "name", "penalty", "solved", "simplified_judgement_type_id"),
    CcsCollection.LANGUAGES: ("id", "name", "entry_point_required", "extensions", "compiler", "runner"),
    CcsCollection.PROBLEMS: (
        "id",
        "uuid",
        "label",
        "name",
        "ordinal",
        "rgb",
        "color",
        "time_limit",
        "memory_limit",
        "output_limit",
        "code_limit",
        "test_data_count",
        "max_score",
        "statement",
        "attachments",
    ),
    CcsCollection.GROUPS: ("id", "icpc_id", "name", "type"),
    CcsCollection.ORGANIZATIONS: ("id", "icpc_id", "name", "formal_name", "country", "logo"),
    CcsCollection.TEAMS: (
        "id",
        "icpc_id",
        "name",
        "label",
        "display_name",
        "organization_id",
        "group_ids",
        "hidden",
        "photo",
    ),
    CcsCollection.PERSONS: ("id", "name", "role", "team_ids", "title"),
    CcsCollection.ACCOUNTS: ("id", "username", "name", "type", "team_id", "person_id"),
    CcsCollection.STATE: ("started", "frozen", "ended", "thawed", "finalized", "end_of_updates"),
    CcsCollection.SUBMISSIONS: (
        "id",
        "language_id",
        "problem_id",
        "team_id",
        "account_id",
        "time",
        "contest_time",
        "files",
    ),
    CcsCollection.JUDGEMENTS: (
        "id",
        "submission_id",
        "judgement_type_id",
        "simplified_judgement_type_id",
        "score",
        "current",
        "start_time",
        "start_contest_time",
        "end_time",
        "end_contest_time",
        "max_run_time",
    ),
    CcsCollection.RUNS: ("id", "judgement_id", "ordinal", "judgement_type_id", "time", "contest_time", "run_time"),
    CcsCollection.CLARIFICATIONS: (
        "id",
        "from_team_id",
        "to_team_id",
        "to_team_ids",
        "to_group_ids",
        "reply_to_id",
        "problem_id",
        "text",
        "time",
        "contest_time",
    ),
    CcsCollection.AWARDS: ("id", "citation", "team_ids"),
    CcsCollection.COMMENTARY: ("id", "time", "contest_time", "message"),
}
"""All properties of both versions."""
_PASS_FAIL: Final = frozenset({"penalty_time", "penalty"})
_SCORE: Final = frozenset({"max_score", "score"})
_PRIVATE: Final[Mapping[CcsCollection, frozenset[str]]] = {
    CcsCollection.SUBMISSIONS: frozenset({"language_id", "account_id", "files"}),
    CcsCollection.JUDGEMENTS: frozenset({"max_run_time"}),
    CcsCollection.RUNS: frozenset(PROPERTIES[CcsCollection.RUNS]),
    CcsCollection.PERSONS: frozenset(PROPERTIES[CcsCollection.PERSONS]),
    CcsCollection.ACCOUNTS: frozenset(PROPERTIES[CcsCollection.ACCOUNTS]),
}
"""Properties of which visitors see nothing."""
_OPENED: Final = frozenset({CcsCollection.SUBMISSIONS, CcsCollection.JUDGEMENTS, CcsCollection.RUNS})
"""Types of which everybody sees everything after the contest, if it is set so."""


def properties(snapshot: ContestSnapshot, collection: CcsCollection, version: CcsVersion) -> list[str]:
    """The properties of a type that the reader may see; none if the type is not served to the reader."""
    left_out = added_properties(collection, version) | (_SCORE if snapshot.is_pass_fail else _PASS_FAIL)
    if not (snapshot.audience.sees_all or snapshot.audience.own):
        is_opened = collection in _OPENED and snapshot.contest.settings.submissions_public
        hidden = frozenset({"account_id"}) if is_opened else _PRIVATE.get(collection, frozenset())
        left_out |= hidden
    return [name for name in PROPERTIES[collection] if name not in left_out]


def access_object(snapshot: ContestSnapshot, version: CcsVersion, capabilities: Sequence[str]) -> Object:
    """The response of ``access``."""
    found = {collection: properties(snapshot, collection, version) for collection in CcsCollection}
    return {
        "capabilities": list(capabilities),
        "endpoints": [{"type": str(key), "properties": names} for key, names in found.items() if names],
    }
