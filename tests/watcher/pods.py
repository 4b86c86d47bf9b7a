"""Pods and events in the API's own form, as the controllers of each kind of job make them."""

from __future__ import annotations

import copy
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

Json = dict[str, Any]
START = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)


def at(seconds: int) -> str:
    """Returns the time so many seconds after the jobs of these tests began, as the API writes it."""
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def uid(*words: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, words))))


def pod(name: str, owner: tuple[str, str, str] | None = None, *, namespace: str = "ml", labels: Json | None = None,
        annotations: Json | None = None, container: str = "pytorch", node: str = "gpu-1", gpus: int = 8,
        created: int = 0, version: int = 0) -> Json:  # fmt: skip
    """Returns a running pod. `owner`: apiVersion, kind and name."""
    metadata: Json = {
        "name": name, "namespace": namespace, "uid": uid(namespace, name, created, version), "labels": labels or {},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", **(annotations or {})},
        "creationTimestamp": at(created), "resourceVersion": "1",
        "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                           "fieldsV1": {"f:status": {}}}],
    }  # fmt: skip
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": owner[0], "kind": owner[1], "name": owner[2],
                                        "uid": uid(*owner), "controller": True, "blockOwnerDeletion": True}]  # fmt: skip
    limits = {"memory": "900Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    spec: Json = {
        "nodeName": node, "restartPolicy": "Never", "containers": [{
            "name": container, "image": "registry.example.com/ml/train:2.6", "command": ["torchrun", "train.py"],
            "env": [{"name": "WANDB_API_KEY", "value": "secret"}], "resources": {"limits": limits, "requests": limits},
            "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }],
    }  # fmt: skip
    status: Json = {
        "phase": "Running", "startTime": at(created + 1), "podIP": "10.0.0.7", "qosClass": "Burstable",
        "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": at(created + 2)}],
        "containerStatuses": [{
            "name": container, "image": "registry.example.com/ml/train:2.6", "imageID": "registry.example.com/ml/train@sha256:1",
            "ready": True, "started": True, "restartCount": 0, "containerID": "containerd://0", "lastState": {},
            "state": {"running": {"startedAt": at(created + 2)}},
        }],
    }  # fmt: skip
    return {"metadata": metadata, "spec": spec, "status": status}


def terminated(code: int, reason: str, when: int, message: str = "") -> Json:
    told = {"exitCode": code, "reason": reason, "startedAt": at(2), "finishedAt": at(when),
            "containerID": "containerd://0"}  # fmt: skip
    return {**told, "message": message} if message else told


def failed(told: Json, code: int = 1, reason: str = "Error", when: int = 300) -> Json:
    """Returns the pod after its container ended."""
    new = copy.deepcopy(told)
    new["status"]["phase"] = "Succeeded" if code == 0 else "Failed"
    status = new["status"]["containerStatuses"][0]
    status |= {"state": {"terminated": terminated(code, reason, when)}, "ready": False, "started": False}
    return new


def restarted(told: Json, code: int, when: int, reason: str = "Error") -> Json:
    """Returns the pod after its container ended and was started again in place."""
    new = copy.deepcopy(told)
    status = new["status"]["containerStatuses"][0]
    status |= {"lastState": {"terminated": terminated(code, reason, when)}, "restartCount": status["restartCount"] + 1}
    status["state"] = {"running": {"startedAt": at(when + 5)}}
    return new


def evicted(told: Json, when: int, message: str) -> Json:
    """Returns the pod after the kubelet evicted it."""
    new = failed(told, 137, "Error", when)
    new["status"] |= {"reason": "Evicted", "message": message}
    new["status"]["conditions"].append(
        {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message,
         "lastProbeTime": None, "lastTransitionTime": at(when)})  # fmt: skip
    return new


def leaving(told: Json, when: int, grace: int = 30) -> Json:
    """Returns the pod once somebody asked for it to be deleted."""
    new = copy.deepcopy(told)
    new["metadata"] |= {"deletionTimestamp": at(when + grace), "deletionGracePeriodSeconds": grace}
    return new


def event(about: Json, reason: str, message: str, when: int, kind: str = "Warning") -> Json:
    metadata = about["metadata"]
    return {
        "metadata": {"name": f"{metadata['name']}.{reason.lower()}", "namespace": metadata["namespace"],
                     "creationTimestamp": at(when), "uid": uid(metadata["name"], reason, when)},
        "involvedObject": {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"],
                           "uid": metadata["uid"], "apiVersion": "v1"},
        "reason": reason, "message": message, "type": kind, "count": 1, "firstTimestamp": at(when),
        "lastTimestamp": at(when), "source": {"component": "kubelet", "host": "gpu-1"}, "reportingComponent": "kubelet",
        "reportingInstance": "gpu-1",
    }  # fmt: skip


def of_pytorchjob(name: str, workers: int, gpus: int = 8) -> list[Json]:
    """Returns the running pods of a PyTorchJob: a master, and workers."""
    made = []
    for number in range(workers + 1):
        role, index = ("master", 0) if number == 0 else ("worker", number - 1)
        labels = {"training.kubeflow.org/job-name": name, "training.kubeflow.org/operator-name": "pytorchjob-controller",
                  "training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": str(index)}  # fmt: skip
        made.append(pod(f"{name}-{role}-{index}", ("kubeflow.org/v1", "PyTorchJob", name), labels=labels, gpus=gpus,
                        node=f"gpu-{number + 1}"))  # fmt: skip
    return made


def of_jobset(name: str, attempt: int, pods: int, created: int) -> list[Json]:
    """Returns the running pods of one attempt of a JobSet with one replicated job, `node`, of one Job."""
    made = []
    for index in range(pods):
        marks = {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/jobset-uid": uid("jobset", name),
                 "jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": "0",
                 "jobset.sigs.k8s.io/restart-attempt": str(attempt),
                 "batch.kubernetes.io/job-completion-index": str(index), "kueue.x-k8s.io/queue-name": "team-a"}  # fmt: skip
        ending = uid(name, attempt, index)[:5]
        made.append(pod(f"{name}-node-0-{index}-{ending}", ("batch/v1", "Job", f"{name}-node-0"), labels=marks,
                        annotations=marks, container="trainer", created=created, node=f"gpu-{index}"))  # fmt: skip
    return made


def of_job(name: str, index: int, created: int = 0) -> Json:
    """Returns a running pod of an indexed Job."""
    marks = {"batch.kubernetes.io/job-completion-index": str(index)}
    labels = {**marks, "batch.kubernetes.io/job-name": name, "job-name": name}
    ending = uid(name, index, created)[:5]
    return pod(f"{name}-{index}-{ending}", ("batch/v1", "Job", name), labels=labels, annotations=marks, created=created)
