"""Prometheus rules, their unit tests, the dashboard and the runbook: every metric, label, alert and section exists."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from adjudge.observe import metrics
from tests.support.install import ROOT
from tests.support.tools import PROMTOOL
from tests.unit.deploy.facts import DEPLOY, documents
from tests.unit.deploy.promql import grouping_labels, selectors

PROMETHEUS = DEPLOY / "prometheus"
RULES = [
    rule
    for path in sorted((PROMETHEUS / "rules").glob("*.yml"))
    for g in documents(path)[0]["groups"]
    for rule in g["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDS = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
TESTS = documents(PROMETHEUS / "tests" / "alerts.yml")[0]["tests"]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "dashboards" / "adjudge.json").read_text())
QUERIES = [(p["title"], t["expr"], t["legendFormat"]) for p in DASHBOARD["panels"] for t in p.get("targets", [])]
RUNBOOK = (ROOT / "docs" / "how-to" / "runbook.md").read_text()
SCRAPED = {"instance", "job"}
"""Labels that Prometheus adds to every series."""
EXTERNAL = {"up": set[str](), "probe_ssl_earliest_cert_expiry": set[str](), "ALERTS": {"alertname", "alertstate"}}
"""Metrics of Prometheus itself and of the blackbox exporter."""


def declared() -> dict[str, set[str]]:
    """Every series that a process serves, with its labels."""
    series = dict(EXTERNAL)
    for metric in metrics.ALL_METRICS:
        labels = set(metric.labels)
        if metric.kind == "histogram":
            series |= {f"{metric.name}_bucket": labels | {"le"}, f"{metric.name}_sum": labels}
            series[f"{metric.name}_count"] = labels
        else:
            series[metric.name] = labels
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes"):
        series[name] = set()
    return series


SERIES = declared()


def labels_of(expression: str) -> set[str]:
    """The labels that the metrics of an expression have; all of them must exist."""
    found: set[str] = set()
    for selector in selectors(expression):
        if selector.metric in RECORDS:
            own = grouping_labels(RECORDS[selector.metric])
        else:
            assert selector.metric in SERIES, f"no process serves {selector.metric}: {expression}"
            own = SERIES[selector.metric]
        assert selector.labels <= own | SCRAPED, f"{selector.metric} has no label {selector.labels - own}: {expression}"
        found |= own
    return found | SCRAPED


EXPRESSIONS = [rule["expr"] for rule in RULES] + [expression for _, expression, _ in QUERIES]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_metrics_and_labels_of_expressions_exist(expression: str) -> None:
    assert selectors(expression)
    assert grouping_labels(expression) <= labels_of(expression)


def test_names_are_read_from_expressions() -> None:
    """The check itself: it finds an unknown metric and an unknown label."""
    read = selectors('sum by (le) (rate(adjudge_x_bucket{le="1.0", kind=~"a|b"}[5m])) / (max(y) > 0) and on () z == 0')
    assert [(item.metric, set(item.labels)) for item in read] == [
        ("adjudge_x_bucket", {"le", "kind"}),
        ("y", set()),
        ("z", set()),
    ]
    with pytest.raises(AssertionError, match="no process serves"):
        labels_of("max(adjudge_no_such_metric)")
    with pytest.raises(AssertionError, match="has no label"):
        labels_of('adjudge_dead_letters{color="red"}')


@pytest.mark.parametrize(("title", "expression", "legend"), QUERIES)
def test_legends_of_the_dashboard_name_labels_of_the_result(title: str, expression: str, legend: str) -> None:
    named = set(re.findall(r"\{\{(\w+)\}\}", legend))
    records = [item.metric for item in selectors(expression) if item.metric in RECORDS]
    by = grouping_labels(expression) if re.search(r"\bby\s*\(", expression) else labels_of(expression)
    if records:
        by = grouping_labels(RECORDS[records[0]])
    assert named <= by, title


def test_buckets_of_the_objective_exist() -> None:
    bounds = {
        value
        for expression in EXPRESSIONS
        for item in selectors(expression)
        for label, value in item.values
        if label == "le"
    }
    text = metrics.render_metrics(None).decode()
    assert bounds
    for bound in bounds:
        assert f'adjudge_verdict_latency_seconds_bucket{{le="{bound}"}}' in text


def test_values_of_matched_labels_are_used_by_the_code() -> None:
    """Roles, classes, results and statuses in rules are strings of the source."""
    source = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    matched = {
        (label, part)
        for expression in EXPRESSIONS
        for item in selectors(expression)
        for label, value in item.values
        for part in value.split("|")
        if label not in {"le", "job", "alertname", "alertstate"}
    }
    assert {label for label, _ in matched} >= {"role", "class", "status"}
    assert not [(label, part) for label, part in matched if f'"{part}"' not in source]


def test_promtool_accepts_configuration_and_rules() -> None:
    done = PROMTOOL.run(["check", "config", "prometheus.yml"], cwd=PROMETHEUS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_as_promtool_expects() -> None:
    done = PROMTOOL.run(["test", "rules", "tests/alerts.yml"], cwd=PROMETHEUS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_firing_and_silent() -> None:
    cases = [case for test in TESTS for case in test["alert_rule_test"]]
    firing = {case["alertname"] for case in cases if case["exp_alerts"]}
    silent = {case["alertname"] for case in cases if not case["exp_alerts"]}
    assert firing == silent == ALERTS.keys()


def test_every_alert_has_a_runbook_section_and_a_link_to_it() -> None:
    sections = re.findall(r"^## (Adjudge\w+)$", RUNBOOK, re.MULTILINE)
    assert sorted(sections) == sorted(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"] == f"docs/how-to/runbook.md#{name.lower()}"
        assert rule["labels"]["severity"] in {"warning", "critical"}
        start = RUNBOOK.partition(f"## {name}\n\n")[2][:40]
        assert start.startswith(f"*{rule['labels']['severity'].capitalize()}.*"), name


def test_dashboard_has_unique_panels_and_a_chosen_data_source() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels if panel["type"] != "row"} == {"${datasource}"}
    assert {item["name"] for item in DASHBOARD["templating"]["list"]} == {"datasource"}


def test_jobs_of_rules_are_scraped() -> None:
    config = documents(PROMETHEUS / "prometheus.yml")[0]
    scraped = {item["job_name"] for item in config["scrape_configs"]} | {"adjudge-tls"}
    used = {
        value
        for expression in EXPRESSIONS
        for item in selectors(expression)
        for label, value in item.values
        if label == "job" and "*" not in value
    }
    assert used <= scraped
