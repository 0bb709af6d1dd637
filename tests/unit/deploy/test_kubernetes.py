"""The Kubernetes manifests: accepted by the schemas, with existing commands, settings and ports. Not run here."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from tests.unit.deploy.facts import CAPABILITIES, DEPLOY, check_command, documents, load_settings

KUBERNETES = DEPLOY / "kubernetes"
KUSTOMIZATION = documents(KUBERNETES / "kustomization.yaml")[0]
OBJECTS = [item for name in KUSTOMIZATION["resources"] for item in documents(KUBERNETES / name)]
VERSIONS = ("1.31", "1.33")


def find(kind: str, name: str, namespace: str = "adjudge") -> dict[str, Any]:
    (found,) = [
        item
        for item in OBJECTS
        if (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace")) == (kind, name, namespace)
    ]
    return found


ROLES = [
    find("Deployment", "adjudge-api"),
    find("Deployment", "adjudge-scheduler"),
    find("Deployment", "adjudge-worker", "adjudge-workers"),
]


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (only,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(only)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("item", OBJECTS, ids=lambda item: f"{item['kind']}-{item['metadata']['name']}")
def test_schema_accepts_manifest(item: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(item, version, strict=True)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role["metadata"]["name"])
def test_role_has_existing_command_settings_and_probes(role: dict[str, Any]) -> None:
    only, namespace = container(role), role["metadata"]["namespace"]
    check_command(only["args"])
    settings = load_settings(find("ConfigMap", "adjudge", namespace)["data"])
    load_settings({item["name"]: "1" for item in only.get("env", [])})
    ports = {port["name"]: port["containerPort"] for port in only["ports"]}
    assert ports["metrics"] == settings.server.metrics_port
    if "http" in ports:
        assert ports["http"] == settings.server.port
    for probe, path in (("startup", "live"), ("liveness", "live"), ("readiness", "ready")):
        assert only[f"{probe}Probe"]["httpGet"] == {"path": f"/health/{path}", "port": "metrics"}
    assert {"configMapRef": {"name": "adjudge"}} in only["envFrom"]
    assert not [item for item in OBJECTS if item["kind"] == "Secret"], "secrets are created by the operator"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role["metadata"]["name"])
def test_role_has_disruption_budget_and_matching_labels(role: dict[str, Any]) -> None:
    name, namespace = role["metadata"]["name"], role["metadata"]["namespace"]
    labels = role["spec"]["template"]["metadata"]["labels"]
    assert role["spec"]["selector"]["matchLabels"] == labels
    budget = find("PodDisruptionBudget", name, namespace)["spec"]
    assert budget["selector"]["matchLabels"] == labels
    assert budget.get("minAvailable") == 1 or budget.get("maxUnavailable") == 1


@pytest.mark.parametrize("role", ROLES[:2], ids=lambda role: role["metadata"]["name"])
def test_servers_have_no_privileges(role: dict[str, Any]) -> None:
    pod = role["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    context = container(role)["securityContext"]
    assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
    assert context["capabilities"] == {"drop": ["ALL"]}


def test_worker_has_exactly_the_needed_capabilities() -> None:
    context = container(ROLES[2])["securityContext"]
    assert sorted(context["capabilities"]["add"]) == CAPABILITIES
    assert context["capabilities"]["drop"] == ["ALL"]
    assert "privileged" not in context
    assert context["readOnlyRootFilesystem"] is True


def test_stopped_pods_have_time_to_finish() -> None:
    defaults = load_settings({})
    api, _, worker = (role["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] for role in ROLES)
    assert api > defaults.server.shutdown_sec + 5, "the preStop hook takes five seconds of it"
    assert worker > defaults.worker.drain_sec + defaults.database.timeout_sec


def test_workers_are_scaled_by_waiting_time() -> None:
    scaler = find("HorizontalPodAutoscaler", "adjudge-worker", "adjudge-workers")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "adjudge-worker"
    assert "replicas" not in ROLES[2]["spec"], "the autoscaler decides"
    (adapter,) = documents(KUBERNETES / "prometheus-adapter.yaml")
    (rule,) = adapter["rules"]["external"]
    assert scaler["metrics"][0]["external"]["metric"]["name"] == rule["name"]["as"]
    recorded = {
        entry["record"]
        for path in (DEPLOY / "prometheus" / "rules").glob("*.yml")
        for group in documents(path)[0]["groups"]
        for entry in group["rules"]
        if "record" in entry
    }
    assert rule["seriesQuery"] in recorded


def test_images_are_pinned_by_digest_in_the_kustomization() -> None:
    images = {image["name"]: image for image in KUSTOMIZATION["images"]}
    used = {container(role)["image"] for role in ROLES} | {"adjudge-server"}
    assert images.keys() == used
    assert all(image["digest"].startswith("sha256:") for image in images.values())
