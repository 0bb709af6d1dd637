"""Maps names of constraints to domain errors.

PostgreSQL reports the name of a violated constraint. SQLite reports the name of CHECK constraints and triggers, and the
columns of unique indexes; both are mapped to the same names first.
"""

from __future__ import annotations

import re
import sqlite3

from adjudge.domain.errors import (
    AdjudgeError,
    ChainNameTaken,
    Conflict,
    InternalFault,
    InvalidInput,
    InvalidTransition,
    NameTaken,
)

TAKEN = {
    "users_name_key": ("name", "That user name is taken; choose another."),
    "users_email_key": ("email", "That e-mail address is in use; log in, or use another."),
    "api_tokens_token_hash_key": ("token", "That token exists already."),
    "identities_issuer_subject_key": ("subject", "That identity belongs to an account already."),
    "identities_pkey": ("subject", "That identity belongs to an account already."),
    "problems_slug_key": ("slug", "A problem with that slug exists; choose another slug, or add a revision to it."),
    "problem_revisions_problem_id_number_key": ("number", "That revision exists already; read the problem again."),
    "contests_slug_key": ("slug", "A contest with that slug exists; choose another slug."),
    "contests_contest_only_key": ("contest_only", "Another contest has that setting; change it there first."),
    "contest_problems_contest_id_label_key": ("label", "The contest has a problem with that label; choose another."),
    "contest_problems_contest_id_ordinal_key": ("ordinal", "The contest has a problem at that position."),
    "removed_intervals_contest_id_key": ("from_at", "The contest is paused already; resume it first."),
    "organizations_code_key": ("code", "An organisation with that code exists; choose another code."),
    "teams_code_key": ("code", "A team with that code exists; choose another code."),
    "contest_groups_contest_id_code_key": ("code", "The contest has a group with that code; choose another."),
    "participants_contest_id_code_key": ("code", "The contest has a participant with that code; choose another."),
    "participants_contest_id_team_id_run_no_key": ("team_id", "That team takes part already."),
    "participants_contest_id_user_id_run_no_key": ("user_id", "That user takes part already."),
    "participant_members_pkey": ("members", "A member takes part in the contest already."),
    "participant_members_contest_id_user_id_run_no_key": ("members", "A member takes part in the contest already."),
    "canned_answers_contest_id_title_key": ("title", "The contest has a canned answer with that title."),
    "contest_invitations_code_hash_key": ("code", "That invitation code exists already."),
    "chain_triggers_chain_id_name_key": ("name", "The chain has a trigger of that name; choose another name."),
}
_NAMES = frozenset({"name", "slug", "email"})
"""Fields of ``TAKEN`` that are shown as names."""
ILLEGAL = {
    "jobs_legal_edge": "A job cannot change its status that way.",
    "jobs_terminal_is_final": "The job has ended; what it ended with can no longer change.",
    "submissions_legal_edge": "A submission cannot change its status that way.",
    "chain_runs_legal_edge": "A chain run cannot change its status that way.",
    "chain_nodes_legal_edge": "A node cannot change its status that way.",
    "contests_legal_edge": "A contest cannot change its state that way.",
    "contests_end_of_updates": "The results of the contest are final; nothing of it can change any more.",
}
_SQLITE_UNIQUE = re.compile(r"UNIQUE constraint failed: (?P<columns>.+)")
_SQLITE_CHECK = re.compile(r"CHECK constraint failed: (?P<name>\w+)")


def domain_error(constraint: str, detail: str) -> AdjudgeError:
    if constraint in TAKEN:
        field, message = TAKEN[constraint]
        return (NameTaken if field in _NAMES else Conflict)(message, field=field)
    if constraint == "chains_name_key":
        return ChainNameTaken(field="name")
    if constraint in ILLEGAL:
        return InvalidTransition(ILLEGAL[constraint])
    if constraint.endswith("_fkey"):
        return InvalidInput(f"Foreign key violation: {constraint.removesuffix('_fkey')}.")
    return InternalFault(f"Unexpected constraint violation: {detail}")


def from_postgres(error: Exception) -> AdjudgeError:
    """Translate a constraint error of asyncpg, which is not imported for SQLite."""
    return domain_error(getattr(error, "constraint_name", None) or "", str(error))


def from_sqlite(error: sqlite3.IntegrityError) -> AdjudgeError:
    text = str(error)
    if match := _SQLITE_UNIQUE.match(text):
        columns = [column.strip() for column in match["columns"].split(",")]
        table = columns[0].partition(".")[0]
        return domain_error("_".join([table, *(column.partition(".")[2] for column in columns), "key"]), text)
    if match := _SQLITE_CHECK.match(text):
        return domain_error(match["name"], text)
    if text == "FOREIGN KEY constraint failed":
        return domain_error("reference_fkey", text)
    return domain_error(text, text)
