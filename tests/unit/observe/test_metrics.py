"""Metrics are declared once, with few and bounded labels."""

from __future__ import annotations

from adjudge.observe import metrics

_PER_REQUEST = {
    "job_id",
    "attempt_id",
    "submission_id",
    "user",
    "user_id",
    "request_id",
    "trace_id",
    "problem_id",
    "id",
}


def test_no_metric_has_a_per_request_label() -> None:
    assert not [metric.name for metric in metrics.ALL_METRICS if _PER_REQUEST & set(metric.labels)]


def test_metric_names_have_prefix_and_unit() -> None:
    names = [metric.name for metric in metrics.ALL_METRICS]
    assert len(names) == len(set(names))
    assert all(name.startswith("adjudge_") for name in names)
    assert all(m.name.endswith("_seconds") for m in metrics.ALL_METRICS if m.kind == "histogram")
    assert all(m.name.endswith("_total") == (m.kind == "counter") for m in metrics.ALL_METRICS)


def test_exposition_contains_counted_values() -> None:
    metrics.WORKER_CLAIM.labels("won", "exposition_test").inc(3)
    metrics.JUDGE_EXEC_INFLIGHT.set(2)
    text = metrics.render_metrics({"queue_depth": {"band=0": 0, "band=1": 7}, "dead_letters": {"": 2}}).decode()
    assert 'adjudge_worker_claim_total{reason="exposition_test",status="won"} 3.0' in text
    assert "adjudge_judge_exec_inflight 2.0" in text
    assert "process_resident_memory_bytes" in text
    assert 'adjudge_queue_depth{band="1"} 7.0' in text
    assert "adjudge_dead_letters 2.0" in text
    assert "adjudge_system_metrics_up 1.0" in text


def test_unknown_metrics_of_the_system_are_left_out() -> None:
    text = metrics.render_metrics(None).decode()
    assert "adjudge_system_metrics_up 0.0" in text
    assert not [metric.name for metric in metrics.ALL_METRICS if metric.is_of_system and metric.name in text]
