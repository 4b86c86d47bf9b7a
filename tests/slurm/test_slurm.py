"""The ways from Slurm to the service, each with real jobs of a real Slurm."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LiveServer
from tests.slurm.cluster import Cluster

LOST_LINK = "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution"
FAILING = """#!/bin/bash
echo 'step 1 loss 2.5'
echo 'Traceback (most recent call last):'
echo '  File "train.py", line 3, in <module>'
echo '    loss.backward()'
echo '{error}'
exit 1
"""
OUT_OF_MEMORY = FAILING.format(error="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
TABLE = """cat <<END
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-21_15:18:49
  host      : $(hostname -s)
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 28517)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
END
"""


def reports(service: LiveServer, job: str) -> list[dict[str, Any]]:
    """Returns the incidents of a job, the newest first."""
    with urllib.request.urlopen(f"{service.url}/api/v1/incidents?limit=200") as answer:
        found = json.load(answer)["items"]
    return [incident for incident in found if incident["job"].get("job_id") == job]


def settled(cluster: Cluster, *python: str) -> None:
    """Runs the collector, once the epilog of every job has been run."""
    command = [*(python or ["python3"]), f"{cluster.environment['TORCHTRIAGE_HOME']}/torchtriage_slurm.py"]
    cluster.until(lambda: not list(cluster.notes.glob("*.part")), "an epilog does not end")
    told = cluster.run(*command, "collect", str(cluster.notes))
    cluster.until(lambda: not list(cluster.notes.glob("*.job")) or not cluster.run(*command, "collect", str(cluster.notes)),
                  f"the collector keeps notes: {told}")  # fmt: skip


@pytest.mark.slow
def test_the_collector_tells_a_time_limit_from_a_failure_and_a_success(cluster: Cluster, service: LiveServer) -> None:
    late = cluster.submit("#!/bin/bash\necho 'step 1 loss 2.5'\nsleep 600\n", "--time=5", "--output=late-%j.out")
    failing = cluster.submit(OUT_OF_MEMORY, "--job-name=my gpt", "--output=%x-%6j-%N-%t.out", "--comment=x")
    fine = cluster.submit("#!/bin/bash\necho fine\n", "--output=fine-%j.out")
    cluster.end_at_its_time_limit(late)
    states = {job: cluster.ended(job)["JobState"] for job in (late, failing, fine)}
    assert list(states.values()) == ["TIMEOUT", "FAILED", "COMPLETED"]
    cluster.until(lambda: len(list(cluster.notes.glob("*.job"))) >= 3, "an epilog did not run")
    settled(cluster)
    assert not reports(service, fine)
    (incident,) = reports(service, failing)
    job = incident["job"]
    assert (job["state"], job["exit_code"], job["job_name"], job["cluster"], job["queue"]) == (
        "FAILED",
        1,
        "my gpt",
        "blue",
        "gpu",
    )
    assert incident["log"]["files"][0]["name"].startswith(f"my gpt-{failing:0>6}-")
    (incident,) = reports(service, late)
    assert incident["job"]["state"] == "TIMEOUT"
    cluster.until(lambda: reports(service, late)[0]["state"] == "triaged", "no verdict")
    cluster.until(lambda: reports(service, failing)[0]["state"] == "triaged", "no verdict")
    assert reports(service, late)[0]["verdict"]["root_cause"]["entry"] == "slurm.time-limit"
    assert reports(service, failing)[0]["verdict"]["root_cause"]["entry"] == "cuda.oom"


@pytest.mark.slow
def test_the_collector_does_with_the_rights_that_its_unit_leaves_it(cluster: Cluster, service: LiveServer) -> None:
    unit = (Path(__file__).resolve().parents[2] / "deploy/slurm/torchtriage-collect.service").read_text()
    options = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
    bounds = ",".join(["-all", *(f"+{name[4:].lower()}" for name in options["CapabilityBoundingSet"].split())])
    setpriv, python = shutil.which("setpriv"), options["ExecStart"].split()[0]
    if setpriv is None or not os.path.exists(python):
        pytest.skip(f"no setpriv (apt-get install util-linux), or no {python}")
    nobody = pwd.getpwnam("nobody")
    home = cluster.folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    os.chown(cluster.notes, nobody.pw_uid, nobody.pw_gid)  # as SlurmUser's folder is
    cluster.notes.chmod(0o700)
    theirs = (f"--uid={nobody.pw_uid}", f"--gid={nobody.pw_gid}", f"--chdir={home}")
    failing = cluster.submit(OUT_OF_MEMORY, *theirs, f"--output={home}/own-%j.out")
    secret = cluster.folder / "secret"
    secret.write_text("of root alone\n")
    secret.chmod(0o600)
    cluster.ended(failing)
    stealing = cluster.submit("#!/bin/bash\nln -sf $1 stolen.out\nexit 1\n", *theirs, "--output=other.out", "--error=stolen.out", arguments=(str(secret),))  # fmt: skip
    cluster.ended(stealing)
    cluster.until(lambda: len(list(cluster.notes.glob("*.job"))) >= 2, "an epilog did not run")
    settled(cluster, setpriv, f"--bounding-set={bounds}", "--no-new-privs", python)
    (incident,) = reports(service, failing)
    assert incident["log"]["files"][0]["name"] == f"own-{failing}.out"
    assert (incident["job"]["user"], incident["job"]["state"]) == ("nobody", "FAILED")
    (incident,) = reports(service, stealing)
    with urllib.request.urlopen(f"{service.url}/api/v1/incidents/{incident['id']}/log") as answer:
        assert "of root alone" not in answer.read().decode()
    assert not list(cluster.notes.glob("*.job"))


def test_a_script_reports_itself_when_it_fails(cluster: Cluster, service: LiveServer) -> None:
    body = OUT_OF_MEMORY.replace("exit 1", "torchtriage_wait sh -c 'exit 5'\nexit $?")
    script = body.replace("#!/bin/bash\n", '#!/bin/bash\nsource "$TORCHTRIAGE_HOME/report-on-exit.sh"\n')
    job = cluster.submit(script, "--output=exit-%j.out")
    assert cluster.ended(job)["ExitCode"] == "5:0"
    (incident,) = reports(service, job)
    assert (incident["job"]["state"], incident["job"]["exit_code"]) == ("FAILED", 5)
    assert "confidence: certain" in (cluster.folder / f"exit-{job}.out").read_text()


def test_a_script_reports_itself_before_its_time_limit(cluster: Cluster, service: LiveServer) -> None:
    script = (
        '#!/bin/bash\nsource "$TORCHTRIAGE_HOME/report-on-exit.sh"\necho step 1 loss 2.5\ntorchtriage_wait sleep 600\n'
    )
    job = cluster.submit(script, "--output=limit-%j.out")
    output = cluster.folder / f"limit-{job}.out"
    cluster.until(lambda: output.exists() and "step 1" in output.read_text(), "the job does not start")
    cluster.run("scancel", "--batch", "--signal=USR1", job)  # what --signal=B:USR1@60 makes Slurm send
    cluster.until(lambda: bool(reports(service, job)), "no report")
    cluster.until(lambda: "slurm.time-limit" in output.read_text(), "no verdict in the log")
    assert cluster.facts(job)["JobState"] == "RUNNING"
    cluster.run("scancel", job)
    cluster.ended(job)
    assert len(reports(service, job)) == 1


def test_the_client_around_srun_reports_one_run(cluster: Cluster, service: LiveServer) -> None:
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    step = f"echo Traceback \\(most recent call last\\):; echo '  File \"a.py\", line 3, in f'; echo '    g()'; echo '{error}'; exit 3"
    script = f'#!/bin/bash\npython3 "$TORCHTRIAGE_HOME/torchtriage_client.py" run -- srun -l sh -c "{step}"\nexit $?\n'.replace(
        '"a.py"', '\\"a.py\\"'
    )
    job = cluster.submit(script, "--output=srun-%j.out")
    assert cluster.ended(job)["ExitCode"] == "3:0"
    (incident,) = reports(service, job)
    assert (incident["job"]["scheduler"], incident["job"]["exit_code"], incident["job"]["attempt"]) == ("slurm", 3, 0)
    assert incident["verdict"]["root_cause"]["entry"] == "cuda.oom"
    assert incident["verdict"]["root_cause"]["rank"] == 0


@pytest.mark.parametrize(
    ("error", "requeued"),
    [(LOST_LINK, True), ("torch.OutOfMemoryError: CUDA out of memory.", False)],
    ids=["requeued", "left"],
)
def test_a_failed_job_is_requeued_where_that_helps(
    cluster: Cluster, service: LiveServer, installed: Path, error: str, requeued: bool
) -> None:
    script = FAILING.format(error=error).replace("exit 1", TABLE + "exit 1")
    job = cluster.submit(script, "--output=again-%j.out", "--hold")
    reporter = (installed / "report-after.sbatch").read_text()
    dependency = f"--dependency=afternotok:{job}"
    after = cluster.submit(reporter, dependency, "--output=after-%j.out", arguments=(job, "requeue"))
    cluster.run("scontrol", "release", job)
    cluster.ended(after)
    told = (cluster.folder / f"after-{after}.out").read_text()
    assert reports(service, job)[0]["job"]["state"] == "FAILED"
    facts = cluster.facts(job)
    if requeued:
        assert f"job {job} requeued: hw.nvlink, without {cluster.node}." in told
        assert (facts["JobState"], facts["Restarts"], facts["ExcNodeList"]) == ("PENDING", "1", cluster.node)
    else:
        assert f"job {job} stays: explained cuda.oom, fix-first." in told
        assert (facts["JobState"], facts["Restarts"]) == ("FAILED", "0")
    cluster.run("scancel", job)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "requeued"),
    [(LOST_LINK, True), ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", False)],
    ids=["requeued", "left"],
)
def test_the_collector_requeues_a_job_where_that_is_decided(
    cluster: Cluster, service: LiveServer, error: str, requeued: bool
) -> None:
    job = cluster.submit(FAILING.format(error=error).replace("exit 1", TABLE + "exit 1"), "--output=decided-%j.out")
    cluster.ended(job)
    cluster.until(lambda: any(path.name.startswith(f"{job}.") for path in cluster.notes.glob("*.job")), "no epilog")
    collecting = ["python3", f"{cluster.environment['TORCHTRIAGE_HOME']}/torchtriage_slurm.py", "collect"]
    told = ""

    def collected() -> bool:
        nonlocal told
        told += cluster.run(*collecting, str(cluster.notes), "--requeue")
        return f"job {job}: " in told

    cluster.until(collected, "nothing is decided")
    facts = cluster.facts(job)
    if requeued:
        assert f"job {job}: restart without {cluster.node}. hw.nvlink is a fault of the host" in told
        assert (facts["JobState"], facts["Restarts"], facts["ExcNodeList"]) == ("PENDING", "1", cluster.node)
    else:
        assert f"job {job}: stop. cuda.oom is certain" in told
        assert (facts["JobState"], facts["Restarts"]) == ("FAILED", "0")
    with urllib.request.urlopen(f"{service.url}/api/v1/decisions?job_id={job}") as answer:
        (decision,) = json.load(answer)["items"]
    assert (decision["mode"], decision["hosts"]) == ("enforce", [cluster.node] if requeued else [])
    cluster.run("scancel", job)


def test_a_requeued_attempt_is_not_the_next_one(cluster: Cluster, service: LiveServer) -> None:
    job = cluster.submit("#!/bin/bash\necho 'step 1 loss 2.5'\nsleep 600\n", "--output=requeued-%j.out")
    cluster.until(lambda: cluster.facts(job).get("JobState") == "RUNNING", "the job does not start")
    cluster.run("scontrol", "requeue", job)
    cluster.until(lambda: any(path.name.startswith(f"{job}.") for path in cluster.notes.glob("*.job")), "no epilog")
    cluster.until(lambda: cluster.facts(job).get("JobState") == "PENDING", "the job is not put back")
    cluster.run("python3", f"{cluster.environment['TORCHTRIAGE_HOME']}/torchtriage_slurm.py", "collect", str(cluster.notes), "--states", "FAILED,REQUEUED")  # fmt: skip
    (incident,) = reports(service, job)
    assert (incident["job"]["state"], incident["job"]["attempt"]) == ("REQUEUED", 0)
    cluster.run("scancel", job)
