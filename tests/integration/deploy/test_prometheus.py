"""A real Prometheus scrapes all roles with the rules of ``deploy/prometheus``; alerts fire and resolve."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.install import ROOT
from tests.support.installation import PASSWORD, AdjudgeProcess, add_user, environment_of
from tests.support.server_process import free_port, http_status
from tests.support.servers import PrometheusServer, RedisServer

pytestmark = pytest.mark.slow
PROMETHEUS = ROOT / "deploy" / "prometheus"
ROLES = ("api", "scheduler", "worker")
PATIENCE_SEC = 120


def test_configuration(ports: Mapping[str, int]) -> dict[str, str]:
    """The shipped configuration and rules with static targets, short intervals and no hold time."""
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    for job in config["scrape_configs"]:
        del job["dns_sd_configs"]
        port = ports[job["job_name"].removeprefix("adjudge-")]
        job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
    files = {"prometheus.yml": yaml.safe_dump(config)}
    for path in (PROMETHEUS / "rules").glob("*.yml"):
        files[f"rules/{path.name}"] = re.sub(r"^( +for:) \S+$", r"\1 1s", path.read_text(), flags=re.MULTILINE)
    return files


test_configuration.__test__ = False  # type: ignore[attr-defined]  # not a test


@dataclass
class Monitored:
    """An installation of three processes, and the Prometheus that scrapes them."""

    environments: dict[str, dict[str, str]]
    processes: dict[str, AdjudgeProcess]
    folder: Path
    prometheus: httpx.Client
    ports: dict[str, int]

    def start(self, role: str) -> None:
        """Start a process in place of an earlier one."""
        if role in self.processes:
            self.processes[role].stop()
        self.processes[role] = AdjudgeProcess([role], self.environments[role], self.folder)

    def stop(self) -> None:
        for process in self.processes.values():
            process.stop()

    def is_ready(self, role: str) -> bool:
        return http_status(self.ports[role], "/health/ready") == 200

    def ask(self, path: str, **parameters: str) -> Any:
        answer = self.prometheus.get(f"/api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def query(self, expression: str) -> dict[str, float]:
        """Values by the only label that is left, or by an empty name."""
        rows = self.ask("query", query=expression)["result"]
        return {
            "".join(row["metric"].get(name, "") for name in ("role", "job")): float(row["value"][1]) for row in rows
        }

    def firing(self) -> set[str]:
        alerts = self.ask("alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SEC
        while not holds():
            output = {role: process.output[-5:] for role, process in self.processes.items()}
            assert time.monotonic() < deadline, f"{what}; firing: {self.firing()}; {output}"
            time.sleep(0.2)


@pytest.fixture
def monitored(
    tmp_path: Path,
    postgres_database: str,
    redis_server: RedisServer,
    start_prometheus: Callable[[Mapping[str, str]], PrometheusServer],
) -> Iterator[Monitored]:
    ports = {role: free_port() for role in ROLES}
    common = environment_of(
        tmp_path,
        database_url=postgres_database,
        redis_url=redis_server.url,
        environment=f"prometheus-{tmp_path.name.replace('_', '-')}"[:32].rstrip("-"),
        job_lease_sec=4,
        job_heartbeat_sec=1,
    )
    environments = {role: {**common, "ADJUDGE_METRICS_PORT": str(ports[role])} for role in ROLES}
    add_user(common, tmp_path, "admin", "admin")
    with ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=start_prometheus(test_configuration(ports)).endpoint))
        found = Monitored(environments, {}, tmp_path, client, ports)
        stack.callback(found.stop)
        for role in ROLES:
            found.start(role)
        yield found


def judge_something(monitored: Monitored) -> None:
    """Run a program through API server, scheduler and worker."""
    url = monitored.processes["api"].wait_for("Adjudge is running at ")
    with httpx.Client(base_url=url, timeout=PATIENCE_SEC) as client:
        order = {"name": "admin", "password": PASSWORD, "token_name": "tests"}
        client.headers["Authorization"] = f"Bearer {client.post('/api/v1/login:token', json=order).json()['secret']}"
        deadline = time.monotonic() + PATIENCE_SEC
        body = {"language": "bash", "source": "echo 1"}
        while (answer := client.post("/api/v1/executions", json=body, params={"wait": 30})).status_code == 503:
            assert time.monotonic() < deadline, answer.text  # the worker is still registering
            time.sleep(0.2)
        assert answer.status_code in (200, 202), answer.text


def test_all_roles_are_scraped_and_alerts_follow_the_worker(monitored: Monitored) -> None:
    monitored.wait_until(
        lambda: monitored.query("up == 1").keys() == {f"adjudge-{role}" for role in ROLES}, "not every role is scraped"
    )
    assert all(http_status(port, "/health/live") == 200 for port in monitored.ports.values())
    monitored.wait_until(lambda: all(map(monitored.is_ready, ROLES)), "not every role is ready")
    alive = dict.fromkeys(ROLES, 1.0)
    monitored.wait_until(
        lambda: monitored.query("adjudge:processes_alive:max") == alive, "not every role is registered"
    )
    judge_something(monitored)
    monitored.wait_until(
        lambda: monitored.query("sum(adjudge_jobs_started_total)").get("", 0) >= 1, "nothing was started"
    )
    lost = {"AdjudgeWorkerLost", "AdjudgeNoWorkers"}
    monitored.wait_until(lambda: not monitored.firing() & lost, "an alert fires too early")

    monitored.processes["worker"].kill()
    monitored.wait_until(lambda: monitored.firing() >= lost, "the alerts do not fire")
    monitored.start("worker")
    monitored.wait_until(lambda: not monitored.firing() & lost, "the alerts do not resolve")
    assert monitored.query("adjudge:processes_alive:max") == alive


def test_rules_are_loaded_and_evaluated_without_errors(monitored: Monitored) -> None:
    monitored.wait_until(lambda: bool(monitored.query("adjudge:queue_oldest_seconds:max")), "no rule was evaluated")
    groups = monitored.ask("rules")["groups"]
    assert len(groups) == 6
    assert not [rule["lastError"] for group in groups for rule in group["rules"] if rule.get("lastError")]
