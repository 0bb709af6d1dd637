"""SQL statements of contests: settings, states, roles, problems, removed intervals, invitations."""

from __future__ import annotations

from typing import Final

from adjudge.store.contests.models import (
    ContestAnnouncement,
    ContestInvitationRow,
    ContestProblem,
    ContestProblemRow,
    ContestRoleRow,
    ContestRow,
    ContestSettings,
    ContestStateChange,
    RemovedIntervalRow,
)
from adjudge.store.engine.rows import column_names
from adjudge.store.engine.statement import Statement

SETTINGS: Final = tuple(column_names(ContestSettings))
"""The columns that organisers set."""

CONTEST_ENDS_AT: Final = """
    (contests.starts_at + contests.duration_us
     + COALESCE((SELECT max(delay_us + extra_us) FROM participants
                 WHERE contest_id = contests.id AND kind = 'official'), 0)
     + COALESCE((SELECT CAST(sum(COALESCE(to_at, 1000000000000000000) - from_at) AS bigint) FROM removed_intervals
                 WHERE contest_id = contests.id AND undone_at IS NULL), 0))
"""
"""The end of a contest for all official participants; while it is paused, a time in the far future."""

INSERT = Statement(
    "contests.insert",
    "Create a contest.",
    f"""
    INSERT INTO contests (id, slug, {", ".join(SETTINGS)}, actor, created_by, created_at, updated_at)
    VALUES (:id, :slug, {", ".join(f":{name}" for name in SETTINGS)}, :created_by, :created_by, {{now}}, {{now}})
    """,
)
INSERT_COUNTER = Statement(
    "contests.insert_counter",
    "Create the counters of a contest.",
    "INSERT INTO contest_counters (contest_id, last_received_at) VALUES (:contest_id, 0)",
)
FIND = Statement(
    "contests.find",
    "Find a contest by slug or id.",
    "SELECT {columns} FROM contests WHERE id = :name OR slug = :name",
    row=ContestRow,
)
_LOCK = "SELECT {columns} FROM contests WHERE id = :id"
LOCK = Statement("contests.lock", "Lock a contest.", _LOCK + " FOR NO KEY UPDATE", sqlite_sql=_LOCK, row=ContestRow)
PAGE = Statement(
    "contests.page",
    "List contests by id, keyset-paginated.",
    """
    SELECT {columns} FROM contests WHERE id < :before
      AND (CAST(:state AS text) IS NULL OR state = :state)
    ORDER BY id DESC LIMIT :limit
    """,
    row=ContestRow,
)
CLOCKS = Statement(
    "contests.clocks",
    "Read the clock of the database and the longest delay and extra time in each of the given contests.",
    """
    SELECT given_id AS contest_id, {now} AS now_us, (SELECT max(delay_us + extra_us) FROM participants
        WHERE contest_id = given_id AND kind = 'official') AS longest_us
    FROM {given}
    """,
    input_columns={"given_id": "text"},
)
UPDATE = Statement(
    "contests.update",
    "Change the settings of a contest if its version is unchanged.",
    f"""
    UPDATE contests SET slug = :slug, {", ".join(f"{name} = :{name}" for name in SETTINGS)}, frozen_at = :frozen_at,
        version = version + 1, actor = :actor, reason = :reason, updated_at = {{now}}
    WHERE id = :id AND version = :version
    """,
)
SET_STATE = Statement(
    "contests.set_state",
    "Change the state of a contest.",
    """
    UPDATE contests SET state = :state, version = version + 1, actor = :actor, reason = :reason, updated_at = {now},
        finalized_at = CASE WHEN CAST(:state AS text) = 'finalized' THEN {now} END
    WHERE id = :id AND version = :version
    """,
)
SET_TIMES = Statement(
    "contests.set_times",
    "Change the freeze, the thaw and the end of updates of a contest.",
    """
    UPDATE contests SET frozen_at = :frozen_at, thaw_at = :thaw_at, end_of_updates_at = :end_of_updates_at,
        version = version + 1, actor = :actor, reason = :reason, updated_at = {now}
    WHERE id = :id AND version = :version
    """,
)
NEXT_VERSION = Statement(
    "contests.next_version",
    "Count a change of the problems of a contest as a change of the contest.",
    """
    UPDATE contests SET version = version + 1, actor = :actor, reason = :reason, updated_at = {now} WHERE id = :id
    """,
)
STATE_LOG = Statement(
    "contests.state_log",
    "List the changes of a contest's state.",
    "SELECT {columns} FROM contest_state_log WHERE contest_id = :contest_id ORDER BY id",
    row=ContestStateChange,
)
ANNOUNCEABLE = Statement(
    "contests.announceable",
    "List contests that start, run, or ended or changed within the given time, whose transitions are announced.",
    f"""
    SELECT {{columns}} FROM contests
    WHERE state IN ('published', 'finalized')
      AND ({CONTEST_ENDS_AT} > {{now}} - CAST(:back_us AS bigint) OR updated_at > {{now}} - CAST(:back_us AS bigint))
    ORDER BY id
    """,
    row=ContestRow,
)
FIND_MANY = Statement(
    "contests.find_many",
    "Read contests by their ids.",
    "SELECT {columns:contests} FROM {given} JOIN contests ON contests.id = given_id",
    row=ContestRow,
    input_columns={"given_id": "text"},
)
ANNOUNCE = Statement(
    "contests.announce",
    "Record that transitions of contests were announced; a known one is left unchanged.",
    """
    INSERT INTO contest_log (contest_id, transition, due_at, announced_at)
    SELECT given_contest_id, given_transition, given_due_at, {now} FROM {given} WHERE true
    ON CONFLICT (contest_id, transition) DO NOTHING
    RETURNING contest_id, transition, due_at
    """,
    input_columns={"given_contest_id": "text", "given_transition": "text", "given_due_at": "bigint"},
)
RETRACT = Statement(
    "contests.retract",
    "Remove announced transitions that the new times of contests put into the future.",
    """
    DELETE FROM contest_log WHERE EXISTS (
        SELECT 1 FROM {given} WHERE given_contest_id = contest_id AND given_transition = transition
    )
    """,
    input_columns={"given_contest_id": "text", "given_transition": "text"},
)
ANNOUNCED = Statement(
    "contests.announced",
    "List the announced transitions of the given contests.",
    "SELECT {columns} FROM contest_log WHERE contest_id IN (SELECT given_id FROM {given}) ORDER BY id",
    row=ContestAnnouncement,
    input_columns={"given_id": "text"},
)

GRANT_ROLES = Statement(
    "contest_roles.grant",
    "Grant roles in a contest.",
    """
    INSERT INTO contest_roles (contest_id, user_id, role, granted_by, created_at)
    SELECT :contest_id, given_user_id, given_role, :granted_by, {now} FROM {given} WHERE true
    ON CONFLICT (contest_id, user_id, role) DO NOTHING
    """,
    input_columns={"given_user_id": "text", "given_role": "text"},
)
REVOKE_ROLES = Statement(
    "contest_roles.revoke",
    "Revoke a role in a contest.",
    "DELETE FROM contest_roles WHERE contest_id = :contest_id AND user_id = :user_id AND role = :role",
)
ROLES = Statement(
    "contest_roles.list",
    "List the roles in a contest.",
    """
    SELECT {columns:contest_roles} FROM contest_roles JOIN users ON users.id = user_id
    WHERE contest_id = :contest_id ORDER BY users.name, role
    """,
    row=ContestRoleRow,
    columns={"user_name": "users.name"},
)
ROLES_OF_USER = Statement(
    "contest_roles.of_user",
    "List the roles of a user in the given contests.",
    "SELECT contest_id, role FROM contest_roles JOIN {given} ON contest_id = given_id WHERE user_id = :user_id",
    input_columns={"given_id": "text"},
)

_PROBLEM_COLUMNS = tuple(column_names(ContestProblem))
_PROBLEM_TYPES: Final = {
    "ordinal": "bigint",
    "points_micro": "bigint",
    "opens_ct_us": "bigint",
    "closes_ct_us": "bigint",
    "accepts": "boolean",
    "judging_paused": "boolean",
    "allowed_languages": "jsonb",
}
DELETE_PROBLEMS = Statement(
    "contest_problems.delete",
    "Remove problems from a contest.",
    "DELETE FROM contest_problems WHERE contest_id = :contest_id AND problem_id IN (SELECT given_id FROM {given})",
    input_columns={"given_id": "text"},
)
PARK_PROBLEMS = Statement(
    "contest_problems.park",
    "Give the problems of a contest labels and positions that no other uses, before they are exchanged.",
    "UPDATE contest_problems SET label = '?' || ordinal, ordinal = -1 - ordinal WHERE contest_id = :contest_id",
)
UPSERT_PROBLEMS = Statement(
    "contest_problems.upsert",
    "Add problems to a contest, or change them.",
    f"""
    INSERT INTO contest_problems ({", ".join(_PROBLEM_COLUMNS)})
    SELECT {", ".join(f"given_{name}" for name in _PROBLEM_COLUMNS)} FROM {{given}} WHERE true
    ON CONFLICT (contest_id, problem_id) DO UPDATE SET
        {", ".join(f"{name} = excluded.{name}" for name in _PROBLEM_COLUMNS[2:])},
        version = contest_problems.version + 1
    """,
    input_columns={f"given_{name}": _PROBLEM_TYPES.get(name, "text") for name in _PROBLEM_COLUMNS},
)
PROBLEMS = Statement(
    "contest_problems.list",
    "List the problems of a contest.",
    """
    SELECT {columns:contest_problems} FROM contest_problems JOIN problems ON problems.id = contest_problems.problem_id
    JOIN problem_revisions ON problem_revisions.id = revision_id
    WHERE contest_id = :contest_id ORDER BY ordinal
    """,
    row=ContestProblemRow,
    columns={
        "slug": "problems.slug",
        "revision": "problem_revisions.number",
        "is_published": "problems.published_revision_id IS NOT NULL",
        "title": "COALESCE(contest_problems.alias, problems.title)",
    },
)

PUBLISHED_PROBLEMS = Statement(
    "contest_problems.published",
    "List the problems of contests that are public outside of them.",
    """
    SELECT contest_id, problem_id FROM {given} JOIN contest_problems ON contest_id = given_id
    JOIN problems ON problems.id = problem_id WHERE problems.published_revision_id IS NOT NULL
    """,
    input_columns={"given_id": "text"},
)

INSERT_INTERVAL = Statement(
    "removed_intervals.insert",
    "Add a removed interval.",
    """
    INSERT INTO removed_intervals (id, contest_id, from_at, to_at, reason, created_by, created_at)
    VALUES (:id, :contest_id, :from_at, :to_at, :reason, :created_by, {now})
    """,
)
CLOSE_INTERVAL = Statement(
    "removed_intervals.close",
    "End an open removed interval.",
    """
    UPDATE removed_intervals SET to_at = :to_at
    WHERE id = :id AND contest_id = :contest_id AND to_at IS NULL AND undone_at IS NULL
    """,
)
UNDO_INTERVAL = Statement(
    "removed_intervals.undo",
    "Undo a removed interval, so that its time counts again.",
    """
    UPDATE removed_intervals SET undone_at = {now}
    WHERE id = :id AND contest_id = :contest_id AND undone_at IS NULL
    """,
)
INTERVALS = Statement(
    "removed_intervals.list",
    "List the removed intervals of the given contests, undone ones included.",
    """
    SELECT {columns} FROM removed_intervals WHERE contest_id IN (SELECT given_id FROM {given}) ORDER BY from_at, id
    """,
    row=RemovedIntervalRow,
    input_columns={"given_id": "text"},
)

INSERT_INVITATION = Statement(
    "contest_invitations.insert",
    "Create an invitation to a contest.",
    """
    INSERT INTO contest_invitations (id, contest_id, code_hash, kind, user_id, note, max_uses, created_by, created_at,
                                     expires_at)
    VALUES (:id, :contest_id, :code_hash, :kind, :user_id, :note, :max_uses, :created_by, {now}, :expires_at)
    """,
)
INVITATIONS = Statement(
    "contest_invitations.list",
    "List the invitations to a contest.",
    "SELECT {columns} FROM contest_invitations WHERE contest_id = :contest_id ORDER BY id",
    row=ContestInvitationRow,
)
USE_INVITATION = Statement(
    "contest_invitations.use",
    "Use an invitation that is valid, for this user if it names one.",
    """
    UPDATE contest_invitations SET uses = uses + 1
    WHERE code_hash = :code_hash AND contest_id = :contest_id AND uses < max_uses AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > {now}) AND (user_id IS NULL OR user_id = :user_id)
    RETURNING {columns}
    """,
    row=ContestInvitationRow,
)
REVOKE_INVITATION = Statement(
    "contest_invitations.revoke",
    "Revoke an invitation to a contest.",
    """
    UPDATE contest_invitations SET revoked_at = {now}
    WHERE id = :id AND contest_id = :contest_id AND revoked_at IS NULL
    """,
)
