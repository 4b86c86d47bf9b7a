#!/usr/bin/env python3
"""Reports jobs of Slurm to torchtriage from outside of them. Python 3.8 or newer, and torchtriage_client.py beside it.

    torchtriage_slurm.py job 4711                  # one job, as in a job with --dependency=afternotok
    torchtriage_slurm.py collect /var/spool/torchtriage --every 10     # what epilogslurmctld has put there

What a job was and how it ended is asked of scontrol: exit codes alone do not tell a time limit from a success.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import pwd
import re
import subprocess
import sys
import time
from typing import Any, Dict, Iterator

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torchtriage_client as client

Facts = Dict[str, str]
STATES = "FAILED,TIMEOUT,NODE_FAIL,OUT_OF_MEMORY,BOOT_FAIL,DEADLINE,PREEMPTED"
_NOT_OVER = ("COMPLETING", "RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING")
_AGAIN = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT")
_NO_JOB = "Invalid job id"
_PAIR = re.compile(r"(?:^| )([A-Z][\w:/]*)=(.*?)(?= [A-Z][\w:/]*=|$)")
_REQUEUE = "ask for a decision, and requeue the job, without the hosts that it names, if it is a restart and no dry run"
_OLD = 3600  # seconds, after which a job that does not get ready is reported as it is


def ask(job: str) -> Facts | None:
    """Returns what scontrol prints about a job: empty if Slurm no longer knows it, None if Slurm does not answer."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "job", job, "-o"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    told = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        return {} if _NO_JOB in told else None
    return dict(_PAIR.findall(told.splitlines()[0]))


def expanded(pattern: str, facts: Facts) -> list[str]:
    """Returns the files that a pattern of --output names. Fills in the parts that scontrol left open, as for a batch
    script. If there is no such file, returns all files that match."""
    if "\\" in pattern:
        return [pattern.replace("\\", "")]
    job = facts.get("JobId", "*")
    values = {
        "j": job,
        "J": job,
        "A": facts.get("ArrayJobId", job),
        "a": facts.get("ArrayTaskId", "4294967294"),
        "b": facts.get("ArrayTaskId", "4")[-1:],
        "x": facts.get("JobName", "*"),
        "u": facts.get("UserId", "*").partition("(")[0],
        "N": (facts.get("BatchHost") or "*").partition(".")[0],
        "n": "0",
        "t": "0",
        "s": "batch",
        "%": "%",
    }

    def fill(loose: bool) -> str:
        def one(found: re.Match[str]) -> str:
            width, letter = found.groups()
            if loose and letter in "NntsJ":
                return "*"
            value = values.get(letter, "*")
            return value.zfill(min(int(width or 0), 10)) if value.isdigit() else value

        return re.sub(r"%(\d*)([A-Za-z%])", one, pattern)

    path = fill(loose=False)
    if "/" not in path[:1]:
        path = os.path.join(facts.get("WorkDir", ""), path)
    return (
        [path] if os.path.exists(path) else sorted(glob.glob(os.path.join(facts.get("WorkDir", ""), fill(loose=True))))
    )


def known(facts: Facts) -> client.Facts:
    """Returns what scontrol prints about a job, as parameters of the API."""
    code, _, number = facts.get("ExitCode", "").partition(":")
    told = {
        "job_id": facts.get("JobId", ""),
        "job_name": facts.get("JobName", ""),
        "user": facts.get("UserId", "").partition("(")[0],
        "queue": facts.get("Partition", ""),
        "attempt": facts.get("Restarts", ""),
        "state": facts.get("JobState", ""),
        "started_at": _seconds(facts.get("StartTime", "")),
        "ended_at": _seconds(facts.get("EndTime", "")),
        "scheduler": "slurm",
        "cluster": facts.get("ClusterName") or _cluster(),
        "gpus": _gpus(facts),
        "image": facts.get("Container", ""),
    }
    if facts.get("ArrayJobId") and facts.get("ArrayTaskId", "").isdigit():
        told["job_id"] = f"{facts['ArrayJobId']}_{facts['ArrayTaskId']}"
    if code.isdigit() and number.isdigit() and (int(code) or int(number)):
        told["exit_code"] = str(128 + int(number) if int(number) else int(code))
    return {name: text for name, text in told.items() if text and text != "(null)"}


def _seconds(moment: str) -> str:
    """Returns the seconds since 1970 of a time that scontrol prints: local time without a zone."""
    with contextlib.suppress(ValueError, OverflowError):
        return str(int(time.mktime(time.strptime(moment, "%Y-%m-%dT%H:%M:%S"))))
    return ""


def _gpus(facts: Facts) -> str:
    found = re.search(r"gres/gpu(?::[\w.-]+)?=(\d+)", facts.get("AllocTRES", "") + "," + facts.get("TRES", ""))
    return found.group(1) if found else ""


def _cluster() -> str:
    if os.environ.get("SLURM_CLUSTER_NAME"):
        return os.environ["SLURM_CLUSTER_NAME"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(["scontrol", "show", "config"], stdout=subprocess.PIPE, timeout=30).stdout.decode()
        found = re.search(r"^ClusterName\s*=\s*(\S+)", told, re.M)
        return found.group(1) if found else ""
    return ""


@contextlib.contextmanager
def acting_as(user: str) -> Iterator[None]:
    """Reads as the job's owner where this is root: a job chooses its own --output, /etc/shadow too."""
    if os.geteuid() != 0 or not user:
        yield
        return
    entry = pwd.getpwnam(user)
    groups = os.getgroups()
    os.initgroups(user, entry.pw_gid)
    os.setegid(entry.pw_gid)
    os.seteuid(entry.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def members_of(facts: Facts) -> list[client.Member]:
    """Returns the job's output files and, if Slurm ended it, how."""
    paths: list[str] = []
    for name in ("StdOut", "StdErr"):
        paths += [path for path in expanded(facts.get(name, ""), facts) if path not in paths]
    members = []
    for path in paths:
        try:
            members.append(client.whole_file(os.path.basename(path), path))
        except OSError as error:
            client.say(str(error))
    members = client.sendable(members)
    if facts.get("JobState") != "FAILED" or not members:
        shown = ("JobId", "JobState", "Reason", "Restarts", "ExitCode", "RunTime", "TimeLimit", "NodeList")
        line = " ".join(f"{name}={facts[name]}" for name in shown if name in facts)
        members.append(client.Member("scontrol.log", [line.encode() + b"\n"]))
    return members


def spool(settings: client.Settings, facts: Facts) -> str:
    """Puts a job's report into the client's spool -> its path. Raises OSError, and KeyError for an unknown user."""
    told = known(facts)
    shown = {"account": "Account", "nodes": "NodeList", "reason": "Reason"}
    labels = [f"{label}:{facts[name]}" for label, name in shown.items()
              if facts.get(name, "None") not in ("(null)", "None")]  # fmt: skip
    owner = told.get("user", "")
    with acting_as(owner):
        members = members_of(facts)
    return client.keep(settings, client.query_of(settings, told, labels), members, lambda: acting_as(owner))


def job(settings: client.Settings, options: argparse.Namespace) -> int:
    facts = ask(options.job)
    if not facts:
        client.say(f"scontrol does not know job {options.job}" if facts == {} else "scontrol does not answer")
        return 1
    if options.state:
        facts["JobState"] = options.state
        facts.pop("Reason", None)
    incident = client.deliver_now(settings, spool(settings, facts))
    status = client.answer(settings, incident, options)
    if options.requeue:
        print(requeue_if_decided(settings, incident, options.job))
    return status


def requeue_if_decided(settings: client.Settings, incident: dict[str, Any], job: str) -> str:
    """Asks for a decision, and requeues the job where it is a restart and no dry run -> a line that says so.

    Slurm changes the hosts of waiting jobs only, so the job is held until they are left out. Raises client.Undelivered.
    """
    decision = client.decision_of(settings, incident)
    told = f"job {job}: {client.decided(decision)}"
    if not client.restarts(decision):
        return told
    excluded = [host for host in (ask(job) or {}).get("ExcNodeList", "").split(",") if host not in ("", "(null)")]
    problem = _scontrol("requeuehold", job)
    if problem:
        return f"{told} It can't be requeued: {problem}"
    hosts = client.hosts_of(decision)
    if hosts and _scontrol("update", f"JobId={job}", "ExcNodeList=" + ",".join(dict.fromkeys(excluded + hosts))):
        told += " Slurm does not know a host of these, so none is left out."
    problem = _scontrol("release", job)
    return f"{told} It stays held: {problem}" if problem else told


def _scontrol(*words: str) -> str:
    """Returns the error message of scontrol; empty if it succeeded."""
    try:
        done = subprocess.run(["scontrol", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return (done.stdout.decode(errors="replace").strip() or "scontrol failed") if done.returncode else ""


def collect(settings: client.Settings, options: argparse.Namespace) -> int:
    while True:
        client.flush(settings)
        for path in sorted(glob.glob(os.path.join(glob.escape(options.spool_of_jobs), "*.job"))):
            with contextlib.suppress(FileNotFoundError):
                if settle(settings, path, options.states.split(","), options.requeue):
                    os.unlink(path)
        if not options.every:
            return 0
        time.sleep(options.every)


def settle(settings: client.Settings, path: str, states: list[str], requeue: bool = False) -> bool:
    """Returns whether a record is finished: its job is reported, and requeued if so decided, or needs no report."""
    with open(path, "rb") as file:
        pairs = (word.split("=", 1) for word in file.read().decode(errors="replace").split("\0") if "=" in word)
    record = dict(pairs)
    facts = ask(record.get("SLURM_JOB_ID", ""))
    old = time.time() - os.stat(path).st_mtime > _OLD
    if facts is None or (facts.get("JobState") in _NOT_OVER and not old):
        return False
    facts = ended(facts, record)
    if facts["JobState"] not in states:
        return True
    try:
        waited = settings.wait if requeue else 0
        incident = client.deliver(settings, spool(settings, facts), time.monotonic() + settings.timeout, waited)
        client.say(f"job {facts.get('JobId')} {facts['JobState']}: {(incident or {}).get('url')}")
        if requeue and incident and facts["JobState"] != "REQUEUED":  # which Slurm has put back already
            client.say(requeue_if_decided(settings, incident, facts["JobId"]))
    except client.Undelivered as error:
        client.say(f"job {facts.get('JobId')}: {error}")  # it waits in the client's spool
    except (OSError, KeyError) as error:
        client.say(f"job {facts.get('JobId')} can't be reported: {error}")
        return old
    return True


def ended(facts: Facts, record: Facts) -> Facts:
    """Returns the facts about the attempt in a record, even if Slurm has requeued the job or no longer knows it."""
    names = {
        "JobId": "JOB_ID",
        "JobName": "JOB_NAME",
        "UserId": "JOB_USER",
        "WorkDir": "JOB_WORK_DIR",
        "Partition": "JOB_PARTITION",
        "NodeList": "JOB_NODELIST",
        "StdOut": "JOB_STDOUT",
        "StdErr": "JOB_STDERR",
        "ExitCode": "JOB_EXIT_CODE2",
        "ClusterName": "CLUSTER_NAME",
        "Restarts": "JOB_RESTART_COUNT",
        "ArrayJobId": "ARRAY_JOB_ID",
        "ArrayTaskId": "ARRAY_TASK_ID",
    }
    recorded = {name: record["SLURM_" + after] for name, after in names.items() if record.get("SLURM_" + after)}
    if not facts:
        return {**recorded, "JobState": "COMPLETED" if recorded.get("ExitCode", "0:0") == "0:0" else "FAILED"}
    facts = {**facts, "ClusterName": recorded.get("ClusterName", "")}
    if facts.get("JobState") in _AGAIN:  # Slurm counts a restart as it puts the job back
        facts["Restarts"] = str(max(0, int(recorded.get("Restarts", "1")) - 1))
        facts["NodeList"] = recorded.get("NodeList", "")
        facts["JobState"] = "REQUEUED"
    return facts


def main() -> int:
    parser = argparse.ArgumentParser(prog="torchtriage_slurm.py", description="Reports jobs of Slurm to torchtriage.")
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("job", help="report one job")
    client.add_report_options(made)
    made.add_argument("job")
    made.add_argument("--requeue", action="store_true", help=_REQUEUE)
    made = commands.add_parser("collect", help="report the failed ones of the jobs that epilogslurmctld noted")
    client.add_options(made)
    made.add_argument("spool_of_jobs", metavar="FOLDER")
    made.add_argument("--every", type=float, default=0, metavar="SECONDS", help="go on, and look so often")
    made.add_argument(
        "--states", default=STATES, help=f"which are reported ({STATES}); CANCELLED and REQUEUED can be too"
    )
    made.add_argument("--requeue", action="store_true", help=_REQUEUE)
    options = parser.parse_args()
    try:
        settings = client.settings_of(options, 300)
        if not settings.url:
            raise ValueError("TORCHTRIAGE_URL is not set")
        return (job if options.command == "job" else collect)(settings, options)
    except (OSError, KeyError, ValueError, client.Undelivered) as error:
        client.say(str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
