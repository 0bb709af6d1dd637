"""The container files: accepted by linters and schemas, consistent with commands, settings and ports. Not run here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support.install import ROOT
from tests.support.tools import NGINX, self_signed_certificate
from tests.unit.deploy.facts import CAPABILITIES, DEPLOY, check_command, load_settings

CONTAINER = DEPLOY / "container"
CONTAINERFILE = (CONTAINER / "Containerfile").read_text()
ROLES = ("api", "scheduler", "worker", "gc")


EXAMPLE = dict(re.findall(r"^(\w+)=(.*)$", (CONTAINER / "env.example").read_text(), re.MULTILINE))


def filled(text: str) -> str:
    """The text with variables of .env replaced by their default, their example or a value."""

    def fill(found: re.Match[str]) -> str:
        return found[2] or EXAMPLE.get(found[1]) or "value"

    return re.sub(r"\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}", fill, text)


COMPOSE_TEXT = (CONTAINER / "compose.yaml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, Any] = yaml.safe_load(filled(COMPOSE_TEXT))["services"]


def test_linter_accepts_containerfile() -> None:
    linter = Path(sys.prefix) / "bin" / "hadolint"
    done = subprocess.run([linter, CONTAINER / "Containerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_base_image_is_chosen_and_pinned_by_the_user() -> None:
    stages = re.findall(r"^FROM (\S+) AS (\w+)$", CONTAINERFILE, re.MULTILINE)
    made = {name for _, name in stages}
    assert made >= {"build", "server", "worker"}
    assert all(base == "${BASE_IMAGE}" or base in made for base, _ in stages)
    assert re.search(r"^ARG BASE_IMAGE$", CONTAINERFILE, re.MULTILINE), "no default"


def test_only_the_worker_image_is_root() -> None:
    stages = dict(
        zip(
            re.findall(r"^FROM .* AS (\w+)", CONTAINERFILE, re.M),
            re.split(r"^FROM .*$", CONTAINERFILE, flags=re.M)[1:],
            strict=True,
        )
    )
    assert "USER 10001:10001" in stages["server"]
    assert "USER 0:0" in stages["worker"]
    for name in ("server", "worker"):
        command = json.loads(re.search(r"^CMD (.*)$", stages[name], re.MULTILINE)[1])  # type: ignore[index]  # it is there
        check_command(command)
    environment = dict(re.findall(r"(ADJUDGE_\w+)=(\S+)", stages["runtime"]))
    load_settings(environment)


def test_copied_files_exist_and_are_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    for source in re.findall(r"^COPY (?!--from)(?:--\S+ )?(.*) \S+$", CONTAINERFILE, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
            assert f"!{name}" in ignored


def test_compose_file_matches_the_schema() -> None:
    schema = resources.files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text()
    jsonschema.validate(COMPOSE, json.loads(schema))
    parts = {"proxy", "postgres", "redis", "minio", "etcd", "prometheus", "grafana", *ROLES}
    assert parts <= SERVICES.keys()
    assert SERVICES["api"]["deploy"]["replicas"] == SERVICES["scheduler"]["deploy"]["replicas"] == 2


def test_images_are_named_by_the_user() -> None:
    for name, service in COMPOSE["services"].items():
        assert re.fullmatch(r"\$\{\w+_IMAGE:\?.*\}", service["image"]), name


def test_example_defines_every_variable_and_no_password() -> None:
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", COMPOSE_TEXT))
    given = EXAMPLE
    assert used - {"GRAFANA_PORT"} == given.keys()
    assert all(not value for name, value in given.items() if name.endswith(("PASSWORD", "SECRET_ACCESS_KEY")))
    pinned = {name for name in given if name.endswith("_IMAGE")} - {"ADJUDGE_SERVER_IMAGE", "ADJUDGE_WORKER_IMAGE"}
    assert all(given[name].endswith("@sha256:DIGEST") for name in pinned)


@pytest.mark.parametrize("role", ROLES)
def test_role_has_existing_command_and_valid_settings(role: str) -> None:
    service = SERVICES[role]
    check_command(service["command"])
    settings = load_settings(service["environment"])
    assert settings.server.environment == "prod"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    if role != "gc":
        probe = " ".join(service["healthcheck"]["test"])
        assert f"127.0.0.1:{settings.server.metrics_port}/health/ready" in probe


def test_worker_has_exactly_the_needed_capabilities() -> None:
    worker = SERVICES["worker"]
    assert sorted(worker["cap_add"]) == CAPABILITIES
    assert "privileged" not in worker
    assert (worker["cgroup"], worker["pids_limit"]) == ("private", -1)
    assert {"/tmp", "/run"} <= {entry.partition(":")[0] for entry in worker["tmpfs"]}
    assert not any("cap_add" in SERVICES[role] for role in ROLES if role != "worker")


def test_stopped_processes_have_time_to_finish() -> None:
    defaults = load_settings({})
    grace = {
        role: int(SERVICES[role]["stop_grace_period"].removesuffix("s")) for role in ("api", "scheduler", "worker")
    }
    assert grace["api"] > defaults.server.shutdown_sec
    assert grace["worker"] > defaults.worker.drain_sec + defaults.database.timeout_sec


def test_proxy_forwards_to_the_port_of_the_api() -> None:
    text = (CONTAINER / "nginx.conf").read_text()
    port = SERVICES["api"]["environment"]["ADJUDGE_PORT"]
    assert f"server api:{port} " in text
    listening = re.search(r"listen (\d+) ssl", text)
    assert listening
    assert SERVICES["proxy"]["ports"] == [f"443:{listening[1]}"]
    limit = load_settings({}).server.upload_limit_bytes
    assert f"client_max_body_size {limit // 1024**2}m;" in text


def test_nginx_accepts_the_configuration(tmp_path: Path) -> None:
    self_signed_certificate(tmp_path / "tls.crt", tmp_path / "tls.key")
    text = (CONTAINER / "nginx.conf").read_text().replace("/etc/nginx/tls", str(tmp_path))
    text = text.replace("api:8080", "127.0.0.1:8080").replace("/run/nginx.pid", str(tmp_path / "pid"))
    text = re.sub(r"/tmp/(body|proxy|fastcgi|uwsgi|scgi);", rf"{tmp_path}/\1;", text)
    (tmp_path / "nginx.conf").write_text(text)
    done = NGINX.run(["-t", "-q", "-c", tmp_path / "nginx.conf", "-e", "stderr"])
    assert done.returncode == 0, done.stderr
