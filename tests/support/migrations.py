"""A migration after the baseline, for tests of upgrades and downgrades while there is no real one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adjudge.store import migrations

EXTRA_REVISION = "0002"
_EXTRA = """
\"\"\"Add a table for tests.\"\"\"

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("CREATE TABLE extra_step (id TEXT PRIMARY KEY)")


def downgrade() -> None:
    op.execute("DROP TABLE extra_step")
"""


def add_extra_migration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program know one more migration than it has; ``folder`` must not exist."""
    shutil.copytree(migrations.VERSIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / f"{EXTRA_REVISION}_extra.py").write_text(_EXTRA.lstrip(), encoding="utf-8")
    monkeypatch.setattr(migrations, "VERSIONS", folder)
