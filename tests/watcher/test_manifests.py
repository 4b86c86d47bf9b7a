"""What deploy/kubernetes-watcher gives the watcher: no more than it uses, and all of it."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import torchtriage
from tests.watcher.api_server import ApiServer
from tests.watcher.conftest import Bench
from tests.watcher.pods import failed, of_pytorchjob
from torchtriage.cli import watch_kubernetes
from torchtriage.watcher.metrics import Counters

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes-watcher"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
RESOURCES: list[dict[str, Any]] = [
    found for name in KUSTOMIZATION["resources"] for found in yaml.safe_load_all((FOLDER / name).read_text())
]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = (each for each in RESOURCES if each["kind"] == kind)
    return found


def allowed() -> set[tuple[str, str]]:
    """Returns each verb and resource that the role gives."""
    rules = of_kind("ClusterRole")["rules"]
    assert all(rule["apiGroups"] == [""] and not {"resourceNames", "nonResourceURLs"} & set(rule) for rule in rules)
    return {(verb, resource) for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_every_resource_fits_its_schema(resource: dict[str, Any]) -> None:
    kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_nothing_lies_in_the_folder_that_is_not_applied() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {"kustomization.yaml", *KUSTOMIZATION["resources"]}


def test_the_rights_are_exactly_the_calls_that_are_made(bench: Bench, api: ApiServer) -> None:
    told = of_pytorchjob("asked", 0)[0]
    api.logs[(told["metadata"]["uid"], "pytorch", 0)] = "torch.OutOfMemoryError: CUDA out of memory.\n"
    api.apply(told)
    with bench.watching():
        api.apply(failed(told))
        bench.incidents(1)
    assert {(call.verb, call.resource) for call in api.asked} == allowed()


def test_names_lead_to_one_another() -> None:
    account, binding = of_kind("ServiceAccount"), of_kind("ClusterRoleBinding")
    (subject,) = binding["subjects"]
    assert subject == {"kind": "ServiceAccount", **account["metadata"]}
    assert subject["namespace"] == KUSTOMIZATION["namespace"]
    assert binding["roleRef"]["name"] == of_kind("ClusterRole")["metadata"]["name"]
    deployment, claim, policy = of_kind("Deployment"), of_kind("PersistentVolumeClaim"), of_kind("NetworkPolicy")
    pod = deployment["spec"]["template"]["spec"]
    component = deployment["spec"]["selector"]["matchLabels"]
    assert component.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert policy["spec"]["podSelector"]["matchLabels"] == component
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]


def test_the_pod_may_do_as_little_as_possible() -> None:
    deployment = of_kind("Deployment")["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    pod = deployment["template"]["spec"]
    assert of_kind("ServiceAccount")["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert container["resources"]["limits"]["memory"]
    token = next(each for each in container["env"] if each["name"] == "TORCHTRIAGE_TOKEN")
    assert "secretKeyRef" in token["valueFrom"]


def test_the_arguments_are_those_of_the_command() -> None:
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    parser = argparse.ArgumentParser()
    watch_kubernetes.add_parser(parser.add_subparsers())
    program, *words = container["args"]
    given = parser.parse_args(words)
    assert program == "torchtriage"
    assert given.port == container["ports"][0]["containerPort"]
    assert str(given.folder) in {mount["mountPath"] for mount in container["volumeMounts"]}
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["path"] in ("/readyz", "/healthz")


def test_the_image_is_of_this_version() -> None:
    (image,) = KUSTOMIZATION["images"]
    assert (image["name"], image["newTag"]) == ("torchtriage", torchtriage.__version__)


def test_kustomize_builds_it() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl")
    built = subprocess.run([kubectl, "kustomize", str(FOLDER)], capture_output=True, text=True, check=True).stdout
    documents = list(yaml.safe_load_all(built))
    assert len(documents) == len(RESOURCES)
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_the_documentation_names_metrics_and_options_that_are_there() -> None:
    text = (FOLDER.parents[1] / "docs" / "kubernetes.md").read_text()
    metrics = set(re.findall(r"torchtriage_watcher_\w+", text))
    counters = Counters().registry.collect()
    assert metrics <= {name + "_total" * (family.type == "counter") for family in counters for name in [family.name]}
    assert metrics
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    watch_kubernetes.add_parser(subparsers)
    options = set(re.findall(r"--[a-z-]+", subparsers.choices["watch-kubernetes"].format_help()))
    used = {"--scope", "--from-literal", "--image", "--nproc-per-node", "--nnodes"}
    assert set(re.findall(r"--[a-z][a-z-]+", text)) - used <= options
