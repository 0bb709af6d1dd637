"""What the catalogue of problems is searched and shown by.

Frozen once released: later changes are later migrations. A test holds that all of them together arrive at
``adjudge.store.schema``.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON_TEXT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
BYTEWISE = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_index(op.f("problems_owner_id_id"), "problems", ["owner_id", "id"])
    op.create_table(
        "problem_words",
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("word", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(
            ["problem_id"], ["problems.id"], name=op.f("problem_words_problem_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("problem_id", "word", name=op.f("problem_words_pkey")),
    )
    op.create_index(op.f("problem_words_word_problem_id"), "problem_words", ["word", "problem_id"])
    op.create_table(
        "problem_tags",
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("tag", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(
            ["problem_id"], ["problems.id"], name=op.f("problem_tags_problem_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("problem_id", "tag", name=op.f("problem_tags_pkey")),
    )
    op.create_index(op.f("problem_tags_tag_problem_id"), "problem_tags", ["tag", "problem_id"])
    op.create_table(
        "problem_imports",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), server_default="import", nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("archive_digest", sa.Text(), nullable=True),
        sa.Column("file_name", sa.Text(), nullable=False),
        sa.Column("wanted", JSON_TEXT, nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("problem_id", sa.Text(), nullable=True),
        sa.Column("revision_id", sa.Text(), nullable=True),
        sa.Column("findings", JSON_TEXT, nullable=True),
        sa.Column("jury", JSON_TEXT, nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("purpose IN ('import', 'verify')", name=op.f("problem_imports_purpose_known")),
        sa.CheckConstraint(
            "state IN ('pending', 'running', 'succeeded', 'failed', 'canceled')",
            name=op.f("problem_imports_state_known"),
        ),
        sa.CheckConstraint(
            "(finished_at IS NULL) = (state IN ('pending', 'running'))",
            name=op.f("problem_imports_finished_at_exactly_when"),
        ),
        sa.ForeignKeyConstraint(["created_by"], ["users.id"], name=op.f("problem_imports_created_by_fkey")),
        sa.ForeignKeyConstraint(["problem_id"], ["problems.id"], name=op.f("problem_imports_problem_id_fkey")),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["problem_revisions.id"], name=op.f("problem_imports_revision_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("problem_imports_pkey")),
    )
    op.create_index(op.f("problem_imports_created_by_id"), "problem_imports", ["created_by", "id"])
    op.create_index(op.f("problem_imports_revision_id_id"), "problem_imports", ["revision_id", "id"])
    op.create_table(
        "cache_revisions",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("cache_revisions_pkey")),
    )
    op.create_index(op.f("cache_revisions_revision"), "cache_revisions", ["revision"])
    op.create_index(
        op.f("submissions_solved"),
        "submissions",
        ["user_id", "problem_id"],
        sqlite_where=sa.text("status = 'accepted'"),
        postgresql_where=sa.text("status = 'accepted'"),
    )


def downgrade() -> None:
    op.drop_index(op.f("submissions_solved"), "submissions")
    op.drop_table("cache_revisions")
    op.drop_table("problem_imports")
    op.drop_table("problem_tags")
    op.drop_table("problem_words")
    op.drop_index(op.f("problems_owner_id_id"), "problems")
