"""Tables of what happens in a contest: submissions, clarifications, balloons, prints, awards, unread marks."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)

from adjudge.domain.contest import MaterialVisibility
from adjudge.domain.verdict import Verdict
from adjudge.store.contests.activity_models import CLARIFICATION_AUDIENCES
from adjudge.store.engine.columns import (
    METADATA,
    check_one_of,
    foreign_key,
    id_column,
    integer_column,
    json_column,
    text_column,
    timestamp_column,
)

PRINT_STATES = ("pending", "printing", "done")

contest_counters = Table(
    "contest_counters",
    METADATA,
    Column("contest_id", Text, ForeignKey("contests.id", ondelete="CASCADE"), primary_key=True),
    integer_column("next_number", 1),
    timestamp_column("last_received_at"),
    integer_column("next_clarification", 1),
    integer_column("next_print", 1),
)

contest_submissions = Table(
    "contest_submissions",
    METADATA,
    Column("submission_id", Text, ForeignKey("submissions.id", ondelete="CASCADE"), primary_key=True),
    foreign_key("contest_id", "contests"),
    foreign_key("participant_id", "participants"),
    foreign_key("problem_id", "problems"),
    integer_column("number", None),
    timestamp_column("received_at"),
    Column("official", Boolean, nullable=False, server_default=false()),
    # The result of the judge run that counts, as integers: sums of floats depend on their order.
    integer_column("score_micro", None, nullable=True),
    integer_column("max_score_micro", None, nullable=True),
    json_column("subtasks", nullable=True),
    timestamp_column("ignored_at", nullable=True),
    timestamp_column("verified_at", nullable=True),
    foreign_key("verified_by", "users", nullable=True),
    text_column("verified_verdict", nullable=True),
    text_column("override_verdict", nullable=True),
    integer_column("override_score_micro", None, nullable=True),
    timestamp_column("overridden_at", nullable=True),
    foreign_key("overridden_by", "users", nullable=True),
    text_column("override_reason", nullable=True),
    integer_column("version", 1),
    UniqueConstraint("contest_id", "number"),
    check_one_of("override_verdict", Verdict),
    check_one_of("verified_verdict", Verdict),
    CheckConstraint("(override_verdict IS NULL) = (overridden_at IS NULL)", name="overridden_at_exactly_when"),
    Index(None, "participant_id", "problem_id", "number"),
    Index(None, "contest_id", "problem_id", "number"),
)

clarifications = Table(
    "clarifications",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    integer_column("number", None),
    foreign_key("from_participant_id", "participants", nullable=True, ondelete="CASCADE"),
    text_column("audience"),
    foreign_key("to_participant_id", "participants", nullable=True, ondelete="CASCADE"),
    foreign_key("reply_to_id", "clarifications", nullable=True, ondelete="CASCADE"),
    foreign_key("problem_id", "problems", nullable=True),
    text_column("category", nullable=True),
    text_column("body"),
    foreign_key("created_by", "users"),
    timestamp_column("created_at"),
    foreign_key("claimed_by", "users", nullable=True),
    timestamp_column("answered_at", nullable=True),
    integer_column("version", 1),
    UniqueConstraint("contest_id", "number"),
    check_one_of("audience", CLARIFICATION_AUDIENCES),
    CheckConstraint("(audience = 'participant') = (to_participant_id IS NOT NULL)", name="to_participant_exactly_when"),
    CheckConstraint("from_participant_id IS NULL OR audience = 'jury'", name="questions_to_jury"),
    Index(None, "from_participant_id", "number"),
    Index(None, "to_participant_id", "number"),
    Index(None, "reply_to_id"),
)

clarification_groups = Table(
    "clarification_groups",
    METADATA,
    foreign_key("clarification_id", "clarifications", ondelete="CASCADE"),
    foreign_key("group_id", "contest_groups", ondelete="CASCADE"),
    PrimaryKeyConstraint("clarification_id", "group_id"),
    Index(None, "group_id"),
)

canned_answers = Table(
    "canned_answers",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    integer_column("ordinal"),
    text_column("title"),
    text_column("body"),
    UniqueConstraint("contest_id", "title"),
)

contest_read_marks = Table(
    "contest_read_marks",
    METADATA,
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    foreign_key("user_id", "users", ondelete="CASCADE"),
    integer_column("clarification_number"),
    timestamp_column("verdicts_until"),
    PrimaryKeyConstraint("contest_id", "user_id"),
    Index(None, "user_id"),
)

balloons = Table(
    "balloons",
    METADATA,
    foreign_key("participant_id", "participants", ondelete="CASCADE"),
    foreign_key("problem_id", "problems"),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    integer_column("number", None),
    timestamp_column("created_at"),
    timestamp_column("delivered_at", nullable=True),
    foreign_key("delivered_by", "users", nullable=True),
    timestamp_column("withdrawn_at", nullable=True),
    PrimaryKeyConstraint("participant_id", "problem_id"),
    CheckConstraint("(delivered_at IS NULL) = (delivered_by IS NULL)", name="delivered_by_exactly_when"),
    CheckConstraint("withdrawn_at IS NULL OR delivered_at IS NOT NULL", name="withdrawn_only_if_delivered"),
    Index(None, "contest_id", "number"),
)

prints = Table(
    "prints",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    integer_column("number", None),
    foreign_key("participant_id", "participants", nullable=True, ondelete="CASCADE"),
    foreign_key("user_id", "users"),
    text_column("file_name"),
    text_column("body"),
    integer_column("size_bytes", None),
    integer_column("pages", None),
    text_column("state", default="pending"),
    foreign_key("claimed_by", "users", nullable=True),
    timestamp_column("created_at"),
    timestamp_column("finished_at", nullable=True),
    UniqueConstraint("contest_id", "number"),
    check_one_of("state", PRINT_STATES),
    CheckConstraint("(finished_at IS NOT NULL) = (state = 'done')", name="finished_at_exactly_when"),
    CheckConstraint("(claimed_by IS NULL) = (state = 'pending')", name="claimed_by_exactly_when"),
    Index(None, "participant_id", "created_at"),
)

contest_materials = Table(
    "contest_materials",
    METADATA,
    id_column(),
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("name"),
    text_column("title"),
    text_column("visible"),
    text_column("digest"),
    integer_column("size_bytes", None),
    foreign_key("created_by", "users"),
    timestamp_column("created_at"),
    UniqueConstraint("contest_id", "name"),
    check_one_of("visible", MaterialVisibility),
)

awards = Table(
    "awards",
    METADATA,
    foreign_key("contest_id", "contests", ondelete="CASCADE"),
    text_column("code"),
    text_column("citation"),
    json_column("participants", default=text("'[]'")),
    Column("managed", Boolean, nullable=False, server_default=true()),
    integer_column("ordinal"),
    integer_column("version", 1),
    timestamp_column("updated_at"),
    PrimaryKeyConstraint("contest_id", "code"),
)
