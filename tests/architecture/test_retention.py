"""No table grows for ever without a reason: each is swept, deleted with another, or kept for a documented reason."""

from __future__ import annotations

from pathlib import Path

from adjudge.relay.retention import Retention, RetentionOptions
from adjudge.settings import all_settings
from adjudge.store.engine.db_triggers import LOG_CLEANUPS
from adjudge.store.ops.retention_policy import POLICY, DeletedWith, Swept
from adjudge.store.schema import METADATA

SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"
OTHERS = {"chain housekeeping": {"chain_runs"}, "registration of processes": {"processes"}}
"""Components other than the retention that delete rows in time, and their tables."""


def test_every_table_has_a_policy() -> None:
    assert set(POLICY) == set(METADATA.tables), "add the table to store/ops/retention_policy.py"


def test_swept_tables_have_a_sweep() -> None:
    every = RetentionOptions(deliveries_ms=1, history_ms=1, audit_ms=1, imports_ms=1, tokens_ms=1, dead_letters_ms=1)
    sweeps = set(Retention(None, every).sweeps)  # type: ignore[arg-type]  # nothing is run
    swept = {name: policy for name, policy in POLICY.items() if isinstance(policy, Swept)}
    assert {name for name, policy in swept.items() if policy.by == "retention"} == sweeps
    for component in {policy.by for policy in swept.values()} - {"retention"}:
        assert {name for name, policy in swept.items() if policy.by == component} == OTHERS[component]


def test_settings_of_retention_exist() -> None:
    known = {name for name, _, _ in all_settings()}
    named = {policy.setting for policy in POLICY.values() if isinstance(policy, Swept) and policy.setting}
    assert named <= known
    assert {name for name in known if name.startswith("retention.")} <= named


def test_rows_that_are_deleted_with_others_cascade() -> None:
    logs = {(log, cleanup.table) for cleanup in LOG_CLEANUPS for log, _ in cleanup.logs}
    for name, policy in POLICY.items():
        if isinstance(policy, DeletedWith):
            cascades = {
                key.column.table.name for key in METADATA.tables[name].foreign_keys if key.ondelete == "CASCADE"
            }
            assert policy.table in cascades or (name, policy.table) in logs, f"{name} stays when {policy.table} goes"
